"""`--config FILE.toml`: options of a command, kept in a file.

    # net.toml
    quantize = "int8"
    images = "photos"                  # paths are relative to the file
    mean = [123.7, 116.3, 103.5]
    shapes = [[1, 3, 224, 224]]

Options that are given beside the file win.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import click

from bmcompiler.errors import UsageError
from bmcompiler.files.toml import read_toml

_TAKEN = "bmcompiler.config"
"""Key of a context's notes: the file whose options it has."""


def config_file() -> Path | None:
    """The file of options that the command at work was given, if any."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_TAKEN)


def add_config_option(command: click.Command) -> None:
    """Give a command, or each one of a group, `--config`."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_config_option(each)
        return
    help_text = "Options by their long names, in a TOML file; those given beside it win."
    kind = click.Path(path_type=Path, dir_okay=False)
    option = click.Option(
        ["--config"], type=kind, metavar="FILE.toml", is_eager=True, expose_value=False, callback=_take, help=help_text
    )
    command.params.append(option)


def _take(ctx: click.Context, _param: click.Parameter, file: Path | None) -> None:
    """Let what the file says stand for options that are not given."""
    if file is None or ctx.resilient_parsing:
        return
    known = {
        name.removeprefix("--"): each
        for each in ctx.command.params
        if isinstance(each, click.Option) and (each.expose_value)
        for name in each.opts
        if name.startswith("--")
    }
    normalize = ctx.token_normalize_func or str  # a command of a group may be run without it, and knows no other words
    ctx.meta[_TAKEN] = file
    ctx.default_map = {}
    for key, value in read_toml(file).items():
        word = normalize(key)
        option = known.get(word)
        if option is None:
            near = difflib.get_close_matches(word, known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"
            raise UsageError(f"{file}: {ctx.command_path} has no option '{key}'", remedy=remedy)
        assert option.name is not None, "click names its options"
        ctx.default_map[option.name] = _given(option, key, value, file)


def _given(option: click.Option, key: str, value: object, file: Path) -> object:
    """A value as it would be written behind the option. Raises UsageError for one of another kind."""
    if option.is_flag or isinstance(value, bool):
        if not (option.is_flag and isinstance(value, bool)):
            what = "true or false" if option.is_flag else "a value"
            raise UsageError(f"{file}: {key} takes {what}, got {json.dumps(value, default=str)}")
        return value
    if option.multiple:
        several = value if isinstance(value, list) and not _is_list_of_shapes(value) else [value]
        return [_text(option, each, file) for each in several]
    return _text(option, value, file)


def _is_list_of_shapes(value: list[Any]) -> bool:
    """[[1, 3, 8, 8]] is one set of shapes, ["a", "b"] and [[[1, 3, 8, 8]], ...] are several values."""
    return bool(value) and isinstance(value[0], list) and not any(isinstance(each, list) for each in value[0])


def _text(option: click.Option, value: object, file: Path) -> str:
    if isinstance(value, list):
        nested = any(isinstance(each, list) for each in value)
        return json.dumps(value) if nested else ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    text = str(value)
    return str(file.parent / text) if text != "-" and _names_file(option, text, file.parent) else text


def _names_file(option: click.Option, text: str, folder: Path) -> bool:
    """Whether this is a path; of options that take words or FILE, FILE:NAME, whether there is such a file."""
    if isinstance(option.type, click.Path):
        return True
    names = (text, text.rpartition(":")[0])
    return "FILE" in (option.metavar or "") and any(name and (folder / name).is_file() for name in names)
