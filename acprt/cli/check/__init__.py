"""`acprt check`: does a program speak ACP as the protocol says?

An agent is started as an editor would start it, and spoken to in raw lines, so that what it really writes is judged
and not what a tolerant client makes of it. Checks are in rooms by subject, one list each; nothing below uses them.
"""
