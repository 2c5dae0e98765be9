"""Arguments of a call, drawn by their names: what a kernel could write, small enough to be recorded."""

from __future__ import annotations

from random import Random
from typing import Any

from bmcompiler.backends.bm1684x.tpukernel.rows import Function, Parameter
from bmcompiler.tpukernel import BANK_SIZE, GLOBAL_MEM_START, LOCAL_MEM_SIZE, data_type_t, dim4, variable_type_t
from tpukernel_calls.memory import FILLED

_LANES = (0, 0, 0, 3, 62)
_CHANNELS = (1, 2, 3, 5, 33, 64, 66, 70)
_DTYPES = [each for each in data_type_t if each.bits >= 8 and each < 12]
_FLOATS = [each for each in _DTYPES if each.is_float]
_SIZE_OF = {"weight_dtype": 1, "kzp_dtype": 1, "shift_dtype": 1}
_BYTES = ("input_dtype", "left_dtype", "right_dtype", "C_dtype", "right_zp_dtype", "C_zp_dtype")
_BITS = (0, 1, 3, 0x3C00, 0x3F80, 0xBC00, 0x4049_0FDB, 0xC020_0000, 0x77, 0xF5, 0xFFFF_FFF3)
_SIZES = {"rows": (1, 2, 5, 17, 66), "cols": (1, 3, 9, 31, 64, 70), "per_channel": (1, 4, 16, 20, 40)}


def drawn(rng: Random, row: Function) -> dict[str, Any]:
    """Values of all parameters of a function."""
    lane, slot, found = rng.choice(_LANES), 0, {}
    outside = iter(rng.sample(range(8), 8))
    shape = (rng.choice((1, 1, 2, 3)), rng.choice(_CHANNELS), rng.choice((1, 1, 2, 3, 5)), rng.choice((1, 2, 7, 9, 16)))
    if any(each.name in {"index_dtype", "mask_dtype"} for each in row.parameters):
        shape = (shape[0], shape[1], shape[2] if "_h_" in row.name else 1, shape[3])
    types = [rng.choice(_DTYPES) for _ in range(2)]
    room = rng.choice((FILLED, FILLED, BANK_SIZE))
    for each in row.parameters:
        if each.base == "local_addr_t":
            found[each.name] = lane * LOCAL_MEM_SIZE + slot * room
            slot += 1
        elif each.base == "variable_t":
            found[each.name] = _variable(rng, lane * LOCAL_MEM_SIZE + slot * room)
            slot += 1
        elif each.base == "data_type_t":
            found[each.name] = _dtype(rng, types, row.name, each.name)
        elif each.base in ("system_addr_t", "global_addr_t", "addr_t"):
            found[each.name] = GLOBAL_MEM_START + next(outside) * 0x1_0000
        else:
            found[each.name] = _value(rng, each, shape)
    return found


def _variable(rng: Random, address: int) -> tuple[int, int]:
    """A tensor, or a scalar."""
    kind = rng.choice((variable_type_t.TENSOR, variable_type_t.TENSOR, variable_type_t.SCALAR))
    return int(kind), address if kind is variable_type_t.TENSOR else rng.choice(_BITS)


def _dtype(rng: Random, types: list[data_type_t], function: str, name: str) -> data_type_t:
    """Mostly what fits the names, so that functions of several types are not refused all the time."""
    if rng.random() < 0.1:
        return rng.choice(_DTYPES)
    if "_fp" in function and name not in ("index_dtype", "mask_dtype", "src_dtype", "dst_dtype"):
        return rng.choice(_FLOATS)
    size = _SIZE_OF.get(name, 0)
    if name == "bias_dtype":
        size = 4 if "depthwise" in function else 2
    if "int8" in function and name in _BYTES:
        size = 1
    if size:
        return rng.choice([each for each in _DTYPES if each.is_int and each.size == size])
    return rng.choice(types if rng.random() < 0.7 else _DTYPES)


def _value(rng: Random, each: Parameter, shape: tuple[int, ...]) -> Any:
    name, base = each.name, each.base
    if each.optional:
        return _strides(rng, shape) if rng.random() < 0.2 else None
    if base == "dim4":
        return dim4(*shape)
    if base == "dim2":
        low = 0 if name in ("insert", "ins") else 1
        return (rng.randint(low, 3), rng.randint(low, 3))
    if base == "padding_t":
        return tuple(rng.randint(0, 2) for _ in range(4))
    return _scalar(rng, name, base)


def _scalar(rng: Random, name: str, base: str) -> Any:
    if base == "static_addr_t":
        return rng.choice((0x400, 0x480, 0x5C0))
    if base == "bool":
        return rng.random() < 0.5
    if base == "float":
        return rng.choice((0.5, -1.25, 3.0, 0.0078125))
    if base == "scalar_t":
        return rng.choice(_BITS)
    if base == "char":
        return rng.randint(-12, 12)
    if base == "unsigned char":
        return rng.randint(0, 14)
    if base == "rounding_mode_t":
        return rng.randint(0, 6)
    if name == "mask_in_lmem":
        return rng.choice((0, 1))
    if name == "multiplier":
        return rng.randint(-(1 << 20), 1 << 20)
    for end, choices in _SIZES.items():
        if name.endswith(end):
            return rng.choice(choices)
    return rng.choice((1, 2, 5, 12, 20, 70)) if name != "output_c" else rng.choice((1, 3, 7, 64, 70))


def _strides(rng: Random, shape: tuple[int, ...]) -> dim4:
    """Of rows, channels and images with gaps between."""
    _, c, h, w = shape
    across = rng.choice((1, 1, 2))
    down = w * across + rng.randint(0, 3)
    channel = h * down + rng.randint(0, 5)
    return dim4((c // 64 + 2) * channel, channel, down, across)
