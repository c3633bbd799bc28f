"""The agent: coding work done with any model, under permissions that hold.

`loop` decides and does nothing; `driver` does what it is told and decides nothing. Every other part is used by the
driver, owns one thing, and imports neither.
"""
