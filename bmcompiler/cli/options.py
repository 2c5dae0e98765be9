"""Options of the commands, made of what `bmcompiler.options` tells about them, and those that are none of these."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from bmcompiler.cli.common import Number, Output, format_table
from bmcompiler.errors import UsageError
from bmcompiler.options import ImageOptions, Options, Preprocessing, as_check
from bmcompiler.spelling import flag, in_shell, spelled
from bmcompiler.told import Told, all_told

F = TypeVar("F", bound=Callable[..., Any])
_TOLD = {each.name: each for each in all_told(Options)}
_IMAGES = [replace(each, default=None) for each in all_told(ImageOptions) if each.name != "cut"]  # the model's to say


class TargetOption(click.Option):
    """Its help names the installed targets, which are looked for only when help is wanted."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Names the chips, then as click does."""
        from bmcompiler.plugins.registry import entry_points

        self.help = f"Chip to compile for: {' or '.join(entry_points('bmcompiler.targets'))}."
        return super().get_help_record(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Chips whose names begin so, in capitals where that is."""
        from bmcompiler.plugins.registry import entry_points

        found = [name for name in entry_points("bmcompiler.targets") if name.startswith(incomplete.lower())]
        return [CompletionItem(name.upper() if incomplete.isupper() else name) for name in found]


def options(*names: str, **changes: dict[str, Any]) -> Callable[[F], F]:
    """Give a command these options, in this order; `changes` are what `click.option` takes, and `flags`, by name.

    The command gets them as values that `Options` takes. With "images" it gets an `ImageOptions` or None; with
    "preprocess" beside that, or where "fuse_preprocess" is told, what is said of pictures without any; with "told" a
    path, and what is said of pictures.
    """

    def decorate(command: F) -> F:
        added = _with_images(command, names) if "images" in names else command
        for name in reversed([each for each in names if each not in ("preprocess", "told")]):
            for each in reversed(_IMAGES) if name == "images" else [_TOLD[name]]:
                added = _option(each, dict(changes.get(name, {})))(added)
        return added

    return decorate


def _option(each: Told, changes: dict[str, Any]) -> Callable[[F], F]:
    """What makes an option of a declaration."""
    with in_shell():
        text = each.sentence(python=False)
    given: dict[str, Any] = {"metavar": each.metavar, "callback": _checked(each), "default": each.default or None}
    given["help"] = f"{text}  [default: {each.unset}]" if each.unset and "default" not in changes else text
    given["show_default"] = not each.unset and each.type != "bool"
    name = "images" if each.name == "path" else each.name
    flags = changes.pop("flags", (flag(name),))
    given |= _kind(each) | changes
    if each.bare is not None:
        given |= {"is_flag": False, "flag_value": each.bare}
    if given.get("required"):  # with a default click takes it as given
        del given["default"]
    return click.option(*flags, name, **given)


def _with_images(command: F, names: Sequence[str]) -> F:
    """A command whose options of images come together."""

    @functools.wraps(command)
    def collected(*, images: Path | None, **given: Any) -> Any:
        details = {each.name: given.pop(each.name) for each in _IMAGES[1:]}
        details = {name: value for name, value in details.items() if value is not None}
        if "told" in names and (images is not None or not details):
            return command(images=images, told=details, **given)
        if "preprocess" in names or given.get("fuse_preprocess") is not None:
            given["preprocess"] = Preprocessing(**details) if images is None and details else None
        elif images is None and details:
            raise UsageError(f"{spelled(next(iter(details)))} is about images, but there is no {spelled('images')}")
        return command(images=None if images is None else ImageOptions(images, **details), **given)

    return cast(F, collected)


def _kind(each: Told) -> dict[str, Any]:
    """What a value is, by the type of the field."""
    first = each.type.split(" | ")[0]
    if first == "bool":
        return {"is_flag": True, "metavar": None}
    if first == "Path_":
        kind = Output if each.written else click.Path
        return {"type": kind(path_type=Path, dir_okay=each.metavar != "FILE", file_okay=each.metavar != "DIR")}
    if first == "object":  # parameters in several words
        return {"multiple": True, "default": ()}
    if each.choices and isinstance(each.choices[0], str):
        return {"type": click.Choice(each.choices)}
    if first == "float":
        return {"type": Number(each.least if each.above is None else each.above, min_open=each.above is not None)}
    if first == "int":
        return {"type": click.IntRange(each.least)}
    return {"type": int if first == "Level" else str}


def _checked(each: Told) -> Callable[[click.Context, click.Parameter, Any], Any]:
    read = _READERS.get(each.type.split(" | ")[0])

    def check(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
        value = value if read is None or value is None else read(value)
        return each.taken(value)

    return check


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        hint = "" if Path(text).suffix == "" else "; put file names ahead of the options"
        raise click.BadParameter(f"'{text}' is no number and no list of numbers like 104,117,123{hint}") from None


def _size(text: str) -> tuple[int, ...]:
    if text == "to-input":
        return ()  # said, other than None
    found = re.fullmatch(r"([0-9]{1,6})x([0-9]{1,6})", text)
    if found is None:
        raise click.BadParameter(f"'{text}' is not like 256x256 (height x width), and not to-input")
    return int(found[1]), int(found[2])


def _shapes(given: str | tuple[str, ...]) -> list[Any]:
    from bmcompiler.sizes.syntax import parse_one, parse_shapes

    return parse_one(given) if isinstance(given, str) else [each for text in given for each in parse_shapes(text)]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_READERS: dict[str, Callable[[Any], Any]] = {
    "Check": as_check,
    "Numbers": _numbers,
    "Sequence[str]": _parts,
    "Shapes": _shapes,
    "tuple[int, int]": _size,
}
"""What makes values of words, by the type of the field."""


def worker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers and --scheduler; the command gets them as `workers` and `scheduler`."""
    scheduler = click.option("--scheduler", metavar="tcp://HOST:PORT", help="Use the workers of a Dask cluster.")
    workers = click.option("--workers", type=int, default=1, show_default=True, help="Processes of this machine.")
    return workers(scheduler(function))


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
