"""Bytes to frames and back, without I/O: no event loop is known here."""
