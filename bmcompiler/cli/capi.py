"""bmnet-capi: C libraries of the vendors' APIs that run on the simulators."""

from __future__ import annotations

from pathlib import Path

import click

from bmcompiler.cli.common import Output, command_line
from bmcompiler.cli.quiet import quiet_option


@click.group()
def cli() -> None:
    """C libraries of the vendors' APIs that run on the simulators."""


@cli.command()
@click.option(
    "-o", "--output", "folder", type=Output(folder=True, path_type=Path), required=True, help="Folder to write to."
)
@click.option("--cc", help="C compiler. [default: $CC, or cc]")
@click.option(
    "--sdk",
    type=click.Choice(("1.1.4", "1.0.3")),
    default="1.1.4",
    show_default=True,
    help="The vendor's SDK that programs were built with; those compiled with these headers run with either.",
)
@click.option(
    "--own-python",
    is_flag=True,
    help="Put Python and the packages that are needed into the folder, which then runs wherever it is moved to.",
)
@quiet_option
def build(folder: Path, cc: str | None, sdk: str, own_python: bool) -> None:
    """Write headers, shared libraries and pkg-config files."""
    from bmcompiler.capi.build import build as build_libraries

    for path in build_libraries(folder, cc, sdk, own_python):
        click.echo(path)


main = command_line(cli, "bmnet-capi")
