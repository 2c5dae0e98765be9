"""Which kinds of model file exist, how they are told apart, and the one way in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from bmcompiler.bmodel.model import BModel
from bmcompiler.errors import FileFormatError
from bmcompiler.files import StrPath, atomic_output, map_file


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


def _is_current(data: memoryview) -> bool:
    return bytes(data[:4]) == b"\xdd\xaa\x55\xff"


def _is_bm168x(data: memoryview) -> bool:
    return bytes(data[:4]) == b"\xee\xaa\x55\xff"


def _is_json(data: memoryview) -> bool:
    return bytes(data[4:64]).lstrip()[:1] == b"{"


CONTAINERS: list[Container] = [
    Container("bm1684", "BM168x model", _is_bm168x, "bmcompiler.bmodel.bm1684"),
    Container("bm1880", "BM1880 model", _is_current, "bmcompiler.bmodel.bm1880"),
    Container("bm1880-json", "BM1880 model of SDK 0.1 (JSON header)", _is_json, "bmcompiler.bmodel.bm1880_json"),
]


def register(container: Container) -> None:
    """Make `load` know one more kind; kinds registered later are asked first, a kind of the same name is replaced."""
    CONTAINERS[:] = [container, *(known for known in CONTAINERS if known.kind != container.kind)]


def load(path: StrPath) -> BModel:
    """Read a model file of any known kind.

    Raises:
        FileFormatError: not a model file, or a truncated or malformed one.
        OSError: the file cannot be opened.
    """
    data = map_file(path)
    for container in CONTAINERS:
        if container.detect(data):
            return cast(BModel, import_module(container.module).read(data, path))
    raise FileFormatError(
        f"not a model file: its first bytes are {bytes(data[:4]).hex(' ')}",
        file=path,
        remedy="pass a .bmodel, one of: " + "; ".join(container.title for container in CONTAINERS),
    )


def save(model: BModel, path: StrPath) -> None:
    """Write a model file: complete or not at all, equal bytes for equal models.

    Raises:
        FileFormatError: the model breaks a rule of its container (the reader would refuse the file).
        OSError: the file cannot be written.
    """
    parts = model.parts(file=path)
    with atomic_output(path) as stream:
        stream.writelines(parts)
