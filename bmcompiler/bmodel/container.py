"""Which kinds of model file exist, how they are told apart, and the one way in and out.

A package adds a kind with an entry point in the group `bmcompiler.containers` that names its `Container`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from bmcompiler.bmodel.model import BModel, Buffer
from bmcompiler.errors import FileFormatError
from bmcompiler.files.kinds import MODEL
from bmcompiler.files.store import StrPath, atomic_output, forget_pages, map_file
from bmcompiler.plugins.registry import failure_note, usable

GROUP = "bmcompiler.containers"


@dataclass(frozen=True)
class Container:
    """One kind of model file.

    Attributes:
        kind: short name, `BModel.container` of what it reads.
        title: what a user calls it.
        detect: tells from the file's content (at least one byte) whether it is of this kind; must not raise.
        module: import path of a module with `read(data: memoryview, file: StrPath) -> BModel`, imported on first use.
    """

    kind: str
    title: str
    detect: Callable[[memoryview], bool]
    module: str


_registered: list[Container] = []


def register(container: Container) -> None:
    """Make `load` know one more kind; kinds registered later are asked first, a kind of the same name is replaced."""
    _registered[:] = [container, *(known for known in _registered if known.kind != container.kind)]


def containers() -> Iterator[Container]:
    """All kinds, in the order they are asked: registered ones, then those of entry points, imported one by one.

    Broken plugins are left out (`registry.failures`).
    """
    yield from _registered
    taken = {container.kind for container in _registered}
    yield from (container for name, container in usable(GROUP) if name not in taken)


def load(path: StrPath) -> BModel:
    """Read a model file of any known kind.

    Raises:
        FileFormatError: not a model file, or a truncated or malformed one.
        OSError: the file cannot be opened.
    """
    return loads(map_file(path), path)


def loads(data: Buffer, path: StrPath) -> BModel:
    """Read the bytes of a model file; `path` is what errors call it. Raises FileFormatError."""
    data = memoryview(data)
    for container in containers():
        if container.detect(data):
            return cast(BModel, import_module(container.module).read(data, path))
    raise FileFormatError(
        f"not a model file: its first bytes are {bytes(data[:4]).hex(' ')}",
        file=path,
        remedy="pass a .bmodel, one of: "
        + "; ".join(container.title for container in containers())
        + failure_note(GROUP),
    )


def save(model: BModel, path: StrPath) -> None:
    """Write a model file: complete or not at all, equal bytes for equal models.

    Raises:
        FileFormatError: the model breaks a rule of its container (the reader would refuse the file).
        UsageError: `path` holds something else than a model file.
        OSError: the file cannot be written.
    """
    parts = model.parts(file=path)
    with atomic_output(path, MODEL) as stream:
        for part in parts:
            stream.write(part)
            forget_pages(part)
