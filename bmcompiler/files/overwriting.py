"""What a command writes never takes the place of what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from bmcompiler.errors import UsageError
from bmcompiler.files.mlir import side_file
from bmcompiler.files.store import StrPath


def refuse_overwriting(outputs: Iterable[StrPath | None], inputs: Iterable[StrPath | None]) -> None:
    """To be asked before anything is read; None is an option that is not given. An IR file stands for its weights, too.

    Files are the same as the disk has them: through links, `./`, `..` or other spellings.

    Raises:
        UsageError: an output is an input, a file in a folder that is an input, or another output.
    """
    written, read = _files(outputs), _files(inputs)
    for output in written:
        for given in read:
            if _same(output, given):
                raise UsageError("is an input, which the output would replace", file=output, remedy=_REMEDY)
            if output.is_file() and given.is_dir() and _place(given) in _place(output).parents:
                reason = f"lies in the input folder {given}, of which the output would replace a file"
                raise UsageError(reason, file=output, remedy=_REMEDY)
    for first, second in combinations(written, 2):
        if _same(first, second):
            raise UsageError("two outputs have this name", file=second, remedy=_REMEDY)


_REMEDY = "give the output another name"


def _files(paths: Iterable[StrPath | None]) -> list[Path]:
    found = [Path(path) for path in paths if path is not None]
    return [*found, *(side_file(path) for path in found if path.suffix == ".mlir")]


def _same(first: Path, second: Path) -> bool:
    """Whether both are one file, or one place for it; devices such as /dev/null lose nothing."""
    if first.exists() and second.exists():
        return not first.is_char_device() and os.path.samefile(first, second)
    return _place(first) == _place(second)


def _place(path: Path) -> Path:
    """Behind all links; a link that leads to itself is one."""
    return Path(os.path.realpath(path))
