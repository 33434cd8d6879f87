"""One connection: its dispatch loop, requests both ways, handlers, tasks and ends."""
