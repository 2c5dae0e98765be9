"""`--quiet` of the commands that write files and print what they did."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from typing import Any, TypeVar, cast

import click

QUIET = "Print no summary."
F = TypeVar("F", bound=Callable[..., Any])


def quiet_option(command: F) -> F:
    """Give a command `--quiet`: nothing on standard output; warnings, errors and progress go to standard error.

    Not for commands that write their result to standard output: these leave out the summary themselves.
    """

    @functools.wraps(command)
    def hushed(*, quiet: bool, **given: Any) -> Any:
        with ExitStack() as stack:
            if quiet:
                stack.enter_context(redirect_stdout(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
            return command(**given)

    return cast(F, click.option("--quiet", is_flag=True, help=QUIET)(hushed))
