"""Labels of samples, from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.files.store import check_regular
from bmcompiler.inputs.stored import stored_arrays
from bmcompiler.numeric.arrays import Array


def load_labels(given: str, names: Sequence[str] | None = None) -> Array:
    """Labels in the order of the samples.

    Args:
        given: an .npy file, `FILE.npz:ARRAY` (or an .npz with one array), or a text file with a class number per line;
            lines may also be `NAME NUMBER`, in any order, where `names` (file names of images) are known.

    Raises:
        RuntimeUseError: no such array, a line that is neither, or a sample without a label.
        CalibrationError: a damaged .npy or .npz file. OSError: the file cannot be read.
    """
    path, _, array = given.partition(".npz:")
    if array or given.endswith((".npz", ".npy")):
        return _stored(path + ".npz" if array else given, array)
    return _lines(Path(given), names)


def _stored(path: str, name: str) -> Array:
    found = stored_arrays(path)
    if not name and len(found) == 1:
        name = next(iter(found))
    if name not in found:
        known = ", ".join(found)
        raise RuntimeUseError(
            f"no array is called '{name}' (found: {known})" if name else f"it holds several arrays: {known}",
            file=path,
            remedy=f"name one: {path}:{next(iter(found))}",
        )
    return found[name].read()


def _lines(path: Path, names: Sequence[str] | None) -> Array:
    check_regular(path)
    lines = [line.split() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    try:
        if all(len(words) == 1 for words in lines):
            return np.array([int(words[0]) for words in lines], np.int64)
        known = {" ".join(words[:-1]): int(words[-1]) for words in lines}
    except ValueError as error:
        reason = f"a line is neither a number nor NAME NUMBER ({error})"
        raise RuntimeUseError(reason, file=path, remedy="write the number of the class into each line") from None
    if names is None:
        raise RuntimeUseError(
            "its lines have names, and the samples have none", file=path, remedy="write one number per line"
        )
    by_name = {Path(name).name: number for name, number in known.items()}
    missing = [name for name in names if Path(name).name not in by_name]
    if missing:
        raise RuntimeUseError(f"'{missing[0]}' has no label", file=path, remedy="add a line for it")
    return np.array([by_name[Path(name).name] for name in names], np.int64)
