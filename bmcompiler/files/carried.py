"""A module on its way to another process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bmcompiler.files.mlir import load_module, save_module
from bmcompiler.ir import Module

_NAME = "net.mlir"


@dataclass(frozen=True)
class Carried:
    """A module that is pickled as MLIR text and weights; its ops and values keep their order."""

    module: Module

    def __reduce__(self) -> tuple[Callable[[Mapping[str, bytes]], Carried], tuple[dict[str, bytes]]]:
        with tempfile.TemporaryDirectory() as folder:
            save_module(self.module, Path(folder) / _NAME)
            return _arrived, ({each.name: each.read_bytes() for each in Path(folder).iterdir()},)


def _arrived(files: Mapping[str, bytes]) -> Carried:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return Carried(load_module(Path(folder) / _NAME))
