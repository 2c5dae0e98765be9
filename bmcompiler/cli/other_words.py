"""Words of other compilers' commands that mean the same as ours (`docs/coming_from.md`), and spellings of ours."""

from __future__ import annotations

from collections.abc import Callable

import click

_SAME = {
    "channel-format": "layout",
    "chip": "target",
    "html": "report",
    "input-num": "limit",
    "input-shapes": "shapes",
    "input": "data",
    "jobs": "workers",
    "model-name": "name",
    "net-name": "name",
    "out": "output",
    "output": "outputs",
    "output-names": "outputs",
    "pixel-format": "channel-order",
    "processor": "target",
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
        word = word.lower().replace("_", "-")
        same = _SAME.get(word, word)
        return word if word in own or same not in own else same

    return read
