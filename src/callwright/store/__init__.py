"""What outlives a turn: the journal, and which of a backend's conversations belongs to which history.

`opening` is the way in; only it and what it needs load the libraries for databases.
"""
