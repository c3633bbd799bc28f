"""Stages that check and repair the events of a turn, whatever backend it came from."""
