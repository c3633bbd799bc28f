"""Stages that check and mend what a turn says, whatever backend it came from."""
