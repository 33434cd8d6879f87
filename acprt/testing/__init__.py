"""Peers for tests: programs that do what they are told, in the same words every time.

Nothing of acprt needs this room, and importing it loads no peer: import the one you want, `acprt.testing.testy`.
"""
