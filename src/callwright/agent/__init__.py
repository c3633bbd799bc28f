"""The agent: performs coding tasks with any model, under enforced permissions.

`loop` decides and performs nothing; `session` performs its effects and decides nothing. The session uses every other
package; each of them owns one thing and imports neither.
"""
