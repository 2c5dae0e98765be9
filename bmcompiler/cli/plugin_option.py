"""`--list-plugins`: installed plugins and their state, in place of the command's work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bmcompiler.cli.common import format_table

F = TypeVar("F", bound=Callable[..., Any])


def list_plugins_option(command: F) -> F:
    """Give a command `--list-plugins`, which prints the installed plugins and ends."""
    return click.option(
        "--list-plugins",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print,
        help="Print the installed plugins and whether each can be loaded.",
    )(command)


def _print(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from bmcompiler.plugins.listing import built_in_counts, list_plugins

    rows = [(each.name, each.group, each.package, each.version, each.state) for each in list_plugins()]
    if rows:
        click.echo(format_table(("name", "group", "package", "version", "state"), rows), nl=False)
    else:
        click.echo("no plugins are installed")
    counts = ", ".join(f"{group} {count}" for group, count in built_in_counts().items())
    click.echo(f"built in: {counts}")
    ctx.exit()
