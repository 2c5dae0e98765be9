"""Words of other compilers' commands that mean the same as ours (`docs/coming_from.md`), and spellings of ours."""

from __future__ import annotations

from collections.abc import Callable

import click

_OTHERS = {
    "channel-format": "layout",
    "chip": "target",
    "input-num": "limit",
    "input-shapes": "shapes",
    "model-name": "name",
    "net-name": "name",
    "output-names": "outputs",
    "pixel-format": "channel-order",
    "processor": "target",
}
"""Options of tpu-mlir and the bmnet front ends -> ours, where meaning and values are the same."""
BEFORE = {
    "check": "check-ir",
    "folder": "float",
    "html": "report",
    "input": "data",
    "jobs": "workers",
    "metric": "decisions",
    "net": "program",
    "out": "output",
    "output": "outputs",
    "outputs": "scored",
    "parts": "resume",
    "samples": "text",
    "timing": "time-passes",
}
"""Options of version 0.1 -> what they are called since, in commands that have none of the former name."""
_SAME = _OTHERS | BEFORE
_GOES = "0.4"
"""The version from which on words of before are not taken any more (docs/upgrading.md)."""


def take_other_words(command: click.Command) -> None:
    """Let a command take `--pixel_format` for `--channel-order`, `--calibration_table`, `--quantize F16`.

    Words of the version before are taken with a warning on standard error that names their successor.

    What an option of its own is called keeps its meaning.
    """
    command.context_settings.setdefault("token_normalize_func", _reader(_own_words(command)))


def _own_words(command: click.Command) -> set[str]:
    words = {name.lstrip("-") for each in command.params for name in (*each.opts, *each.secondary_opts)}
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return words.union(*map(_own_words, below))


def _reader(own: set[str]) -> Callable[[str], str]:
    def read(word: str) -> str:
        given = word = word.lower().replace("_", "-")
        while word not in own:
            if word not in _SAME:
                return given
            word = _SAME[word]
        if word != given and given in BEFORE:
            _warn(given, word)
        return word

    return read


def _warn(former: str, word: str) -> None:
    """Once for each word of a command line, and not where the shell asks for what may follow."""
    ctx = click.get_current_context(silent=True)
    said = f"{__name__}.{former}"
    if ctx is None or ctx.resilient_parsing or said in ctx.meta:
        return
    ctx.meta[said] = True
    click.echo(f"warning: --{former} is called --{word} now; --{former} goes in version {_GOES}", err=True)
