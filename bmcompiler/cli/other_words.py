"""Words of other compilers' commands that mean the same as ours (`docs/coming_from.md`), and spellings of ours."""

from __future__ import annotations

from collections.abc import Callable

import click

_SAME = {
    "channel-format": "layout",
    "check": "check-ir",
    "chip": "target",
    "folder": "float",
    "html": "report",
    "input-num": "limit",
    "input-shapes": "shapes",
    "input": "data",
    "jobs": "workers",
    "model-name": "name",
    "net": "program",
    "net-name": "name",
    "out": "output",
    "output": "outputs",
    "output-names": "outputs",
    "outputs": "scored",
    "parts": "resume",
    "pixel-format": "channel-order",
    "processor": "target",
    "samples": "text",
    "timing": "time-passes",
}
"""Options of tpu-mlir, the bmnet front ends and of versions before -> ours, where meaning and values are the same."""


def take_other_words(command: click.Command) -> None:
    """Let a command take `--pixel_format` for `--channel-order`, `--calibration_table`, `--quantize F16`.

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
        return word

    return read
