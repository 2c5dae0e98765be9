"""Types of the net's inputs: the file's shapes, `--shapes` over them, and what to do about dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError, UsageError
from bmcompiler.frontends.onnx.tensors import check_extent, dtype_name
from bmcompiler.ir import TensorType
from bmcompiler.spelling import spelled

Dim = int | str
"""A fixed size, or the name (maybe empty) of a dynamic dimension."""


def shapes_by_name(
    shapes: Sequence[Sequence[int]] | Mapping[str, Sequence[int]] | None, names: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Given shapes by input name. Raises UsageError for unknown names, too many shapes, or sizes below 1."""
    if shapes is None:
        return {}
    if isinstance(shapes, Mapping):
        given = {str(name): shape for name, shape in shapes.items()}
    else:
        if len(shapes) > len(names):
            raise UsageError(f"{len(shapes)} shapes are given for {len(names)} inputs ({', '.join(names)})")
        given = dict(zip(names, shapes))
    for name, shape in given.items():
        if name not in names:
            raise UsageError(f"a shape is given for '{name}', but the inputs are {', '.join(names) or 'none'}")
        if any(isinstance(d, bool) or not isinstance(d, int) or d < 1 for d in shape):
            raise UsageError(f"the shape of input '{name}' must be a list of sizes of 1 or more, got {list(shape)}")
    return {name: tuple(shape) for name, shape in given.items()}


def input_type(
    info: onnx.ValueInfoProto, given: tuple[int, ...] | None, others: Sequence[str], notes: list[str]
) -> TensorType:
    """Static type of one input. A dynamic batch as the only dynamic dimension becomes 1, and `notes` says so.

    Args:
        info: the graph input.
        given: its shape from the user.
        others: all input names, for the remedy.
        notes: remarks for the user are added here.

    Raises:
        UnsupportedError: dynamic dimensions without a given shape, or not a tensor.
        ShapeError: the given shape has another number of axes.
    """
    if info.type.WhichOneof("value") != "tensor_type":
        raise UnsupportedError(f"input '{info.name}' is not a tensor")
    tensor = info.type.tensor_type
    dims = _dims(info.name, tensor) if tensor.HasField("shape") else None
    if given is not None:
        if dims is not None and len(dims) != len(given):
            raise ShapeError(f"input '{info.name}' has {len(dims)} axes {_text(dims)}, the given shape {list(given)}")
        return _static(info, given)
    if dims is None:
        raise _dynamic(info.name, "has no shape in the file", None, others)
    if dims and isinstance(dims[0], str) and all(isinstance(d, int) for d in dims[1:]):
        notes.append(f"input '{info.name}': batch size is open in the file {_text(dims)}, compiled for 1")
        dims = [1, *dims[1:]]
    fixed = tuple(d for d in dims if isinstance(d, int))
    if len(fixed) < len(dims):
        raise _dynamic(info.name, f"has dynamic dimensions {_text(dims)}", dims, others)
    return _static(info, fixed)


def _static(info: onnx.ValueInfoProto, shape: tuple[int, ...]) -> TensorType:
    check_extent(info.name, shape)
    return TensorType(shape, dtype_name(info.type.tensor_type.elem_type))


def _dims(name: str, tensor: onnx.TypeProto.Tensor) -> list[Dim]:
    dims: list[Dim] = []
    for dim in tensor.shape.dim:
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0:
            if dim.dim_value >= 2**31:
                raise FileFormatError(f"input '{name}' has an impossible dimension {dim.dim_value}")
            dims.append(dim.dim_value)
        else:  # exporters write 0 or -1 as well as names
            dims.append(dim.dim_param)
    return dims


def _text(dims: Sequence[Dim]) -> str:
    return "[" + ", ".join(str(d) if d else "?" for d in dims) + "]"


def _dynamic(name: str, what: str, dims: Sequence[Dim] | None, others: Sequence[str]) -> UnsupportedError:
    channels_last = dims is not None and len(dims) == 4 and dims[-1] in (1, 3)
    likely = (1, 224, 224, 3) if channels_last else (1, 3, 224, 224)
    example = [d if isinstance(d, int) else likely[i] if i < 4 else 1 for i, d in enumerate(dims or likely)]
    more = f", one list per input in the order {', '.join(others)}" if len(others) > 1 else ""
    remedy = f"give a fixed shape, as in {spelled('shapes', [example])}{more}"
    return UnsupportedError(f"input '{name}' {what}", remedy=remedy)
