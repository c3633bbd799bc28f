import sys


def main() -> int:
    print('hello')
    return 0
