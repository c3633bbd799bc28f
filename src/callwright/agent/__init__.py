"""The agent: coding work done with any model, under permissions that hold.

`loop` decides and does nothing; `session` carries out its effects and decides nothing. Every other package is used by
the session, owns one thing, and imports neither.
"""
