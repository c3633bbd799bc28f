import os


def main() -> int:
    print('hello')
    return 0
