"""The contract between the compiler and a reader of model files.

A frontend is found through the entry point group `bmcompiler.frontends`, by the ending of the file it reads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.plugins.registry import failure_note, lookup, usable

if TYPE_CHECKING:
    from bmcompiler.bmnet.layer import CustomizedCaffeLayer
    from bmcompiler.ir import Module
    from bmcompiler.options import Network

StrPath = str | os.PathLike[str]
Shapes = Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None
"""Input shapes in input order, or by input name."""
_BUILT_IN_SUFFIXES = {"caffe": (".prototxt", ".caffemodel"), "onnx": (".onnx",), "mlir": (".mlir",)}
"""Endings of built-in frontends, so that only the needed one is imported; plugins read other files."""


class Frontend(ABC):
    """What a frontend plugin provides: an object of a subclass."""

    name: str
    suffixes: tuple[str, ...]
    """Endings of the files it reads, with the dot, in lower case."""

    @abstractmethod
    def load(
        self,
        model_path: StrPath,
        weights_path: StrPath | None = None,
        *,
        shapes: Shapes = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Module:
        """Read a model into a module with one function.

        Args:
            weights_path: the file with the weights, where they are apart.
            shapes: shapes that replace those of the file, in input order or by input name.
            outputs: names that become the outputs, in this order; what only serves others is left out.
            name: name of the function; default is the file name without its suffix.

        Raises BMError.
        """

    def takes(self, model: object) -> bool:
        """Whether `load` reads this model, which is in memory and not a path. By default none."""
        return False

    def load_plugins(self) -> None:
        """Load all plugins that add to what it reads; broken ones are left out. By default there are none."""
        return

    def custom_layers(
        self, layers: Iterable[CustomizedCaffeLayer | type[CustomizedCaffeLayer]]
    ) -> AbstractContextManager[None]:
        """Inside, these classes read layers before all registered ones. By default raises UnsupportedError."""
        raise UnsupportedError(f"the {self.name} frontend takes no classes of layers")


def network_name(path: Path) -> str:
    """What a network without a name of its own is called: its file, as UTF-8 whatever the locale says of file names."""
    return os.fsencode(path.stem).decode("utf-8", "replace")


def file_of(model: object) -> StrPath | None:
    """The path that a network is given by, None for one in memory."""
    return model if isinstance(model, str | os.PathLike) else None


def frontend_for(model: Network) -> Frontend:
    """The frontend for a file's ending, or for what is in memory. Raises UnsupportedError when there is none."""
    group = "bmcompiler.frontends"
    if not isinstance(model, str | os.PathLike):
        for _, reader in usable(group):
            if reader.takes(model):
                return cast(Frontend, reader)
        raise UsageError(
            f"a network is the path of a file, an onnx.ModelProto or its bytes, got {type(model).__name__}",
            remedy="modules are compiled by compile_module",
        )
    suffix = Path(model).suffix.lower()
    for name, suffixes in _BUILT_IN_SUFFIXES.items():
        if suffix in suffixes:
            frontend: Frontend = lookup(group, name, "frontend")
            return frontend
    for _, frontend in usable(group):
        if suffix in frontend.suffixes:
            return frontend
    raise UnsupportedError(
        f"no frontend reads '{Path(model).suffix or Path(model).name}' files",
        file=model,
        remedy="give a .onnx file, a .prototxt with its .caffemodel, or a .mlir file" + failure_note(group),
    )
