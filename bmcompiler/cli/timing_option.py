"""The option that gives other parameters to a timing model."""

from __future__ import annotations

import click

timing_profile_option = click.option(
    "--timing-profile",
    multiple=True,
    metavar="FILE.json|KEY=VALUE,...",
    help="Other parameters for the timing model, as JSON or pairs; 'help' lists them.",
)


def list_parameters(target: str) -> None:
    """Print the parameters of a target's timing model with their defaults, one a line."""
    from bmcompiler.analysis.timing_profile import parameters
    from bmcompiler.cli.common import printable

    known = parameters(target)
    if not known:
        click.echo(f"the timing model of {printable(target)} has no parameters")
    for name, value in known.items():
        click.echo(f"{name}={value:.12g}")
