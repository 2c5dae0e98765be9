"""bmnet-capi: C libraries of the vendors' APIs that run on the simulators."""

from __future__ import annotations

from pathlib import Path

import click

from bmcompiler.cli.common import Output, command_line


@click.group()
def cli() -> None:
    """C libraries of the vendors' APIs that run on the simulators."""


@cli.command()
@click.option("-o", "--output", "folder", type=Output(path_type=Path), required=True, help="Folder to write to.")
@click.option("--cc", help="C compiler. [default: $CC, or cc]")
def build(folder: Path, cc: str | None) -> None:
    """Write headers, shared libraries and pkg-config files."""
    from bmcompiler.capi.build import build as build_libraries

    for path in build_libraries(folder, cc):
        click.echo(path)


main = command_line(cli, "bmnet-capi")
