"""The options of commands that work through many samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def worker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers and --scheduler; the command gets them as `workers` and `scheduler`."""
    scheduler = click.option("--scheduler", metavar="tcp://HOST:PORT", help="Use the workers of a Dask cluster.")
    workers = click.option("--workers", type=int, default=1, show_default=True, help="Processes of this machine.")
    return workers(scheduler(function))
