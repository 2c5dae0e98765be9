"""The contract between the compiler and a reader of model files.

A frontend is found through the entry point group `bmcompiler.frontends`, by the ending of the file it reads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from bmcompiler.errors import UnsupportedError

if TYPE_CHECKING:
    from bmcompiler.bmnet.layer import CustomizedCaffeLayer
    from bmcompiler.ir import Module

StrPath = str | os.PathLike[str]
Shapes = Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None
"""Input shapes in input order, or by input name."""


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

    def load_plugins(self) -> None:
        """Load all plugins that add to what it reads; broken ones are left out. By default there are none."""
        return

    def custom_layers(
        self, layers: Iterable[CustomizedCaffeLayer | type[CustomizedCaffeLayer]]
    ) -> AbstractContextManager[None]:
        """Inside, these classes read layers before all registered ones. By default raises UnsupportedError."""
        raise UnsupportedError(f"the {self.name} frontend takes no classes of layers")
