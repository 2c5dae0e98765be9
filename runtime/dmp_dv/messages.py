"""The last error message of the process, and the version (dv.md 6)."""

from __future__ import annotations

import os
import sys
from threading import Lock

from bmcompiler.capi.said import say

VERSION = "7.2.20201106"
"""Hardware revision and date of the driver interface that this package follows."""

_LIMIT = 255  # characters

_lock = Lock()
_last = ""


def dmp_dv_get_version_string() -> str:
    """HW_MAJOR.HW_MINOR.YYYYMMDD of the driver interface."""
    return VERSION


def dmp_dv_get_last_error_message() -> str:
    """The last error of any thread; success does not clear it."""
    return _last


def dmp_dv_set_last_error_message(form: str, *values: object) -> None:
    """Set the last error message, printf-like; at most 255 characters are kept.

    Also prints to stderr when the environment variable VERBOSITY is 1 or more; errors of this package do not.
    """
    if not isinstance(form, str):
        report("the form of a message is not a string")
        return
    try:
        report(form % values if values else form)
    except (TypeError, ValueError):
        report(f"the values of a message do not fit its form {form!r}")
    verbosity = os.environ.get("VERBOSITY", "0")
    if verbosity.isdigit() and int(verbosity) >= 1:
        print(_last, file=sys.stderr)


def report(text: str) -> None:
    """Make `text` the last error message."""
    global _last  # noqa: PLW0603 - one message per process, as in C
    with _lock:
        _last = text[:_LIMIT]
    say(_last)


def refuse(code: int, text: str) -> int:
    """Set the last error message; gives back the code, for callers to return."""
    report(text)
    return code
