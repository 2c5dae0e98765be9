"""What `--timing-profile help` prints."""

from __future__ import annotations

import click


def list_parameters(target: str) -> None:
    """Print the parameters of a target's timing model: a line for each, in each profile that has a name."""
    from bmcompiler.analysis.timing_profile import meanings, named_profiles, parameters
    from bmcompiler.cli.common import printable

    known, profiles, means = parameters(target), named_profiles(target), meanings(target)
    if not known:
        click.echo(f"the timing model of {printable(target)} has no parameters")
    for name, value in known.items():
        click.echo(f"{name}={value:.12g}" + (f"  {means[name]}" if name in means else ""))
        for title, profile in profiles.items():
            click.echo(f"    {title}: {getattr(profile, name):.12g} ({profile.standing(name)})")
