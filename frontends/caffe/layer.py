"""What a converter sees of a source layer, and the registry of converters by Caffe type."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.textformat import Tree
from bmcompiler.frontends.caffe.weights import Blob
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import plugin_code
from bmcompiler.plugins.tables import Doors, PluginTable

if TYPE_CHECKING:
    from bmcompiler.numeric.arrays import Floats

Results: TypeAlias = Value | Sequence[Value]
"""What a converter returns: the Value of its only top, or a sequence with one Value per top."""
Converter: TypeAlias = Callable[["Layer"], Results]
GROUP = "bmcompiler.caffe_layers"
REFUSED = frozenset({"Filter", "Python", "Recurrent"})
"""Types whose converters only say why they cannot be compiled (`layers.refused`)."""
MAX_ELEMENTS = 2**31 - 1
"""Largest tensor accepted; Caffe's own limit."""
MAX_CONSTANT = 1 << 24
"""Largest constant made from a filler instead of read from a file."""


class Layer:
    """One source layer during conversion.

    `p` is the LayerParameter, `inputs` the bottoms' values, `b` a builder that appends to the net with this layer's
    location, `blobs` its trained weights (None: the files have none), `extra` the prototxt fields unknown to the schema
    (see `textformat`).
    """

    def __init__(
        self,
        p: caffe_pb2.LayerParameter,
        inputs: list[Value],
        blobs: list[Blob] | None,
        b: Builder,
        *,
        extra: Tree,
        weights_file: Path | None = None,
    ) -> None:
        self.p, self.inputs, self.blobs, self.b, self.extra = p, inputs, blobs, b, extra
        self.weights_file = weights_file
        self.name, self.type = p.name, p.type

    # -- inputs -----------------------------------------------------------------------------------------------------
    @property
    def only(self) -> Value:
        """The input of a layer that takes exactly one."""
        self.expect_inputs(1, 1)
        return self.inputs[0]

    @property
    def x(self) -> Value:
        """The first input. Raises FileFormatError for a layer without any."""
        self.expect_inputs(1, None)
        return self.inputs[0]

    def expect_inputs(self, least: int, most: int | None) -> None:
        """Raise FileFormatError unless the number of bottoms lies in the range (None: open end)."""
        count = len(self.inputs)
        if count < least or (most is not None and count > most):
            wanted = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise self.bad(f"takes {wanted} bottoms, has {count}")

    def axis(self, axis: int, rank: int | None = None, *, end: bool = False) -> int:
        """Canonical form of an axis that may count from the back; `end` allows the one-past-last axis."""
        rank = self.x.type.rank if rank is None else rank
        if not -rank <= axis < rank + end:
            raise self.bad(f"axis {axis} does not exist in a blob of {rank} axes")
        return axis + rank if axis < 0 else axis

    def image(self, x: Value | None = None) -> tuple[int, ...]:
        """N, C, H and W of a blob, the first input's unless told otherwise. Raises ShapeError for other ranks."""
        x = self.x if x is None else x
        if x.type.rank != 4:
            raise self.shape_error(f"takes a blob of 4 axes (N, C, H, W), got {list(x.shape)}")
        return x.shape

    def need_channels(self, x: Value) -> None:
        """Raise ShapeError for a blob without a channel axis."""
        if x.type.rank < 2:
            raise self.shape_error(f"takes a blob with a channel axis, got {list(x.shape)}")

    # -- weights ----------------------------------------------------------------------------------------------------
    def weights(self, *shapes: tuple[int, ...]) -> list[Floats]:
        """The layer's blobs in the shapes stated (leading ones may differ: old files pad shapes to four axes).

        Raises FileFormatError (blobs missing) or ShapeError (count or shape), with what was expected and found.
        """
        if not self.blobs:
            raise FileFormatError(
                f"has no weights{self._where()}; expected {_shapes(shapes)}",
                layer=self.name,
                kind=self.type,
                remedy="give the .caffemodel that was trained with this net (layers are matched by name)",
            )
        if len(self.blobs) != len(shapes):
            raise self.shape_error(f"has {len(self.blobs)} weight blobs{self._where()}, expected {_shapes(shapes)}")
        for index, (blob, shape) in enumerate(zip(self.blobs, shapes)):
            if _core(blob.shape) != _core(shape):
                reason = f"weight blob {index} has shape {list(blob.shape)}{self._where()}, expected {list(shape)}"
                remedy = "give the .caffemodel that was trained with this net, or its own .prototxt"
                raise ShapeError(reason, layer=self.name, kind=self.type, remedy=remedy)
        return [blob.values.reshape(shape) for blob, shape in zip(self.blobs, shapes)]

    def _where(self) -> str:
        return f" in {self.weights_file.name}" if self.weights_file is not None else ""

    def constant(self, array: Any, suffix: str) -> Value:
        """A float32 constant named after the layer."""
        return self.b.weight(np.asarray(array, np.float32), f"{self.name}.{suffix}")

    def scalar(self, value: float, like: Value, suffix: str) -> Value:
        """A constant of one element that broadcasts against `like`."""
        return self.constant(np.full((1,) * like.type.rank, value), suffix)

    # -- building -----------------------------------------------------------------------------------------------------
    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshape where the shape differs; raises ShapeError when the element counts do."""
        if tuple(shape) == x.shape:
            return x
        if prod(shape) != prod(x.shape):
            raise self.shape_error(f"cannot reshape {list(x.shape)} to {list(shape)}")
        return self.b.reshape(x, shape=tuple(shape))

    def affine(self, x: Value, scale: float, shift: float) -> Value:
        """scale * x + shift, leaving out what changes nothing."""
        if scale != 1:
            x = self.b.mul(x, self.scalar(scale, x, "scale"))
        if shift != 0:
            x = self.b.add(x, self.scalar(shift, x, "shift"))
        return x

    def check_padding(self, x: Value, pad_h: int, pad_w: int) -> None:
        """Raise ShapeError when the padded input would be beyond any use: a wrong number in the file."""
        n, c, h, w = x.shape
        if n * c * (h + 2 * pad_h) * (w + 2 * pad_w) > MAX_ELEMENTS:
            raise self.shape_error(
                f"padding {[pad_h, pad_w]} makes {list(x.shape)} larger than {MAX_ELEMENTS} elements"
            )

    # -- errors -------------------------------------------------------------------------------------------------------
    def bad(self, reason: str) -> FileFormatError:
        """The error for a malformed layer."""
        return FileFormatError(reason, layer=self.name, kind=self.type)

    def shape_error(self, reason: str) -> ShapeError:
        """The error for blobs whose shapes do not fit."""
        return ShapeError(reason, layer=self.name, kind=self.type)

    def unsupported(self, reason: str, remedy: str | None = None) -> UnsupportedError:
        """The error for what Caffe can do and we cannot."""
        return UnsupportedError(reason, layer=self.name, kind=self.type, remedy=remedy)


def _core(shape: Sequence[int]) -> tuple[int, ...]:
    first = next((i for i, d in enumerate(shape) if d != 1), len(shape))
    return tuple(shape[first:])


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(list(s)) for s in shapes)


# -- registry ---------------------------------------------------------------------------------------------------------


def _take(found: Any) -> None:
    from bmcompiler.frontends.caffe.custom import CustomizedCaffeLayer, register_custom_layer

    if isinstance(found, type) and issubclass(found, CustomizedCaffeLayer):
        register_custom_layer(found)
    elif found not in _converters.entries().values():  # a decorated converter is registered by its import
        found()


_doors = Doors(GROUP, _take)
_converters: PluginTable[str, Converter] = PluginTable(
    _doors, lambda kind: f"Caffe layer type '{kind}'", lambda k: (k,)
)


def caffe_layer(*types: str) -> Callable[[Converter], Converter]:
    """Decorator: the function converts layers of these Caffe types to TensorOps; returns the value(s) of its tops.

    Raises UnsupportedError when one of them is built in, or another function of the same package converts it already.
    Two packages that claim a type make an error when a net needs it.
    """

    def register(convert: Converter) -> Converter:
        for each in types:
            _converters.add(each, convert)
        return convert

    return register


def find_converter(kind: str) -> Converter | None:
    """Converter of a type; plugins (entry point group `bmcompiler.caffe_layers`) are loaded when no built-in fits.

    Raises PluginError when two packages claim the type, or the plugin called like it is broken.
    """
    return _converters.get(kind)


def local_converters(converters: Mapping[str, Converter]) -> AbstractContextManager[None]:
    """Inside, these converters go before all registered ones."""
    return _converters.local(converters)


def nearest_types(kind: str) -> list[str]:
    """Supported types whose names look like `kind`, best first."""
    lowered = {name.lower(): name for name in supported_types() if name not in REFUSED}
    return [lowered[name] for name in difflib.get_close_matches(kind.lower(), lowered, 3, 0.5)]


def supported_types() -> Iterator[str]:
    """Every type that has a converter, built in or from plugins, in alphabetical order."""
    load_converters()
    return iter(sorted(_converters.entries()))


def load_converters() -> None:
    """Import the built-in converters and all plugins; broken ones are left out (`registry.failures`)."""
    _doors.open_built_in()
    _doors.open_all()


def run_converter(convert: Converter, layer: Layer) -> Results:
    """Call a converter; what a plugin's own raises besides reported errors becomes a PluginError."""
    if getattr(convert, "__module__", "").startswith("bmcompiler."):
        return convert(layer)
    with plugin_code(f"the plugin for layers of type '{layer.type}'"):
        return convert(layer)
