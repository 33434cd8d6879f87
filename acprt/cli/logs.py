"""The log of acprt on stderr, for the command alone: a library configures no logging, a program does."""

from __future__ import annotations

import logging

__all__ = ["LOG_LEVELS", "log_to_stderr"]

LOG_LEVELS = ["debug", "info", "warning", "error"]


def log_to_stderr(level: str | None) -> None:
    """Write what `acprt` logs from `level` on; with None, nothing: the command tells failures in its own words.

    Only that a trace has gaps is said in any case: who asked for one must not find out when it is needed.
    """
    logger = logging.getLogger("acprt")
    if level is None:
        logger.addHandler(logging.NullHandler())
        if logging.lastResort is not None:
            logging.getLogger("acprt.trace").addHandler(logging.lastResort)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
