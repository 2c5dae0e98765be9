"""What the operators that arrange data or ask for shapes compute, as plain loops (see `oracle`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from oracle_numbers import build

from bmcompiler.bmlang import DataType, PadType
from bmcompiler.frontends.bmlang.numbers import numpy_type

Index = tuple[int, ...]
Args = dict[str, Any]
INT32 = DataType.INT32


def arranged(name: str, args: Args, out: DataType) -> Any:
    """Each element of the result is one of the operand, or a filling."""
    x = args["tensor_i"]
    base = name.removesuffix("_v2")
    p = {
        key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in args.items() if value is not x
    }
    if base == "permute":
        order = p["order"]
        return build([x.shape[a] for a in order], out, lambda i: x[tuple(i[order.index(a)] for a in range(x.ndim))])
    if base in ("tile", "broadcast"):
        reps = p["reps"] if base == "tile" else p["times"]
        shape = [size * times for size, times in zip(x.shape, reps)]
        return build(shape, out, lambda i: x[tuple(a % size for a, size in zip(i, x.shape))])
    if base == "extract":
        shape = [math.ceil((e - s) / t) for s, e, t in zip(p["start"], p["end"], p["stride"])]
        return build(shape, out, lambda i: x[tuple(s + a * t for a, s, t in zip(i, p["start"], p["stride"]))])
    if base == "pad":
        return padded(x, p["paddings"], p["pad_val"].value, PadType(p["pad_mode"]), out)
    if base == "space_to_batch":
        (b0, b1), (top, bottom, left, right) = p["block_size"], p["pad"]
        n, c, h, w = x.shape
        whole = padded(x, (0, 0, 0, 0, top, bottom, left, right), 0, PadType.PAD_CONSTANT, out)
        shape = (n * b0 * b1, c, (h + top + bottom) // b0, (w + left + right) // b1)
        return build(
            shape, out, lambda i: whole[i[0] % n, i[1], i[2] * b0 + i[0] // n // b1, i[3] * b1 + i[0] // n % b1]
        )
    (b0, b1), (top, bottom, left, right) = p["block_size"], p["crop_size"]
    n, c, h, w = x.shape[0] // (b0 * b1), *x.shape[1:]
    shape = (n, c, h * b0 - top - bottom, w * b1 - left - right)

    def back(i: Index) -> Any:
        y, z = i[2] + top, i[3] + left
        return x[(y % b0 * b1 + z % b1) * n + i[0], i[1], y // b0, z // b1]

    return build(shape, out, back)


def padded(x: Any, widths: Sequence[int], number: Any, mode: PadType, out: DataType) -> Any:
    shape = [size + widths[2 * a] + widths[2 * a + 1] for a, size in enumerate(x.shape)]

    def element(index: Index) -> Any:
        found = []
        for axis, (i, size) in enumerate(zip(index, x.shape)):
            place = i - widths[2 * axis]
            if not 0 <= place < size:
                if mode == PadType.PAD_CONSTANT:
                    return number
                if mode == PadType.PAD_EDGE:
                    place = min(max(place, 0), size - 1)
                elif mode == PadType.PAD_REFLECT:
                    place = -place if place < 0 else 2 * (size - 1) - place
                else:
                    place = -1 - place if place < 0 else 2 * size - 1 - place
            found.append(place)
        return x[tuple(found)]

    return build(shape, out, element)


def interleaved(args: Args, out: DataType) -> Any:
    a, b, axis, step = args["tensor_i0"], args["tensor_i1"], args["axis"], args["step"]
    shape = [2 * size if n == axis else size for n, size in enumerate(a.shape)]

    def element(i: Index) -> Any:
        block, place = divmod(i[axis], step)
        inner = (*i[:axis], block // 2 * step + place, *i[axis + 1 :])
        return (b if block % 2 else a)[inner]

    return build(shape, out, element)


def joined(args: Args, out: DataType) -> Any:
    parts, axis = args["tensor_i"], args["axis"]
    shape = [sum(p.shape[axis] for p in parts) if n == axis else size for n, size in enumerate(parts[0].shape)]

    def element(i: Index) -> Any:
        place = i[axis]
        for part in parts:
            if place < part.shape[axis]:
                return part[(*i[:axis], place, *i[axis + 1 :])]
            place -= part.shape[axis]
        raise AssertionError

    return build(shape, out, element)


def pieces(args: Args, outs: Sequence[DataType]) -> list[Any]:
    x, axis, number = args["tensor_i"], args["axis"], args["num"]
    sizes = args["size"] or (x.shape[axis] // number,) * number
    found = []
    for n, (size, dtype) in enumerate(zip(sizes, outs)):
        start = sum(sizes[:n])
        shape = [size if a == axis else whole for a, whole in enumerate(x.shape)]
        found.append(build(shape, dtype, lambda i, s=start: x[(*i[:axis], i[axis] + s, *i[axis + 1 :])]))
    return found


def reshaped(name: str, args: Args, out: DataType) -> Any:
    if name == "number_like":
        return np.full(args["tensor_like"].shape, args["scalar_i"].value, numpy_type(out))
    if name == "sequence_gen":
        shape = [int(n) for n in args["shape_tensor"]]
        return np.arange(math.prod(shape)).reshape(shape).astype(numpy_type(out))
    x = args["tensor_i"]
    shape = list(x.shape)
    if name == "shape_fetch":
        p = args["param"]
        return np.array(shape[p.begin_axis : p.end_axis : p.step], numpy_type(out))
    if name == "squeeze":
        axes = [a % x.ndim for a in args["axis"]]
        shape = [s for n, s in enumerate(shape) if (n not in axes if axes else s != 1)]
    elif name == "expand_dims":
        shape[args["param"].axis : args["param"].axis] = [1] * args["param"].ndims
    else:
        wanted = [int(n) for n in args["shape_info" if name == "reshape_v2" else "reshape_param"]]
        sizes = [shape[n] if size == 0 else size for n, size in enumerate(wanted)]
        rest = x.size // -math.prod(sizes) if -1 in sizes else 0
        shape = [rest if size == -1 else size for size in sizes]
    return x.reshape(shape)
