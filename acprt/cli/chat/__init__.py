"""`acprt chat`: a terminal client. The command, what it shows, what it reads, and what it does by itself.

It must never allow an agent what the user did not, nor let an agent's text steer the terminal.
"""
