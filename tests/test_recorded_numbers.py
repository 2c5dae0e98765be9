"""What arithmetic makes of special numbers: `tests/data/numbers`, a digest for every function, type, rounding, shift.

What is right of them is held by recordings of the vendors' models and by exact sums in other tests. Here no pair of
types and no rounding is left out, at no limit and no tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from special_numbers import few_floats, floats, halves, integers, matrix, pairs

from bmcompiler.backends.bm1684x.codes import Ar, Precision
from bmcompiler.backends.dv.arithmetic import stages
from bmcompiler.errors import BMError
from bmcompiler.numeric import arith, factors, fp32, fused, half_products, narrowing, ordered, quant_modes, sampled
from bmcompiler.numeric import floats as types
from bmcompiler.numeric.halves import BF16, FP16
from bmcompiler.numeric.rounding import Rounding, shift_right, whole
from bmcompiler.runtime.simulator.bm1684 import gdma
from bmcompiler.runtime.simulator.bm1684x.cube.integers import requantized
from bmcompiler.runtime.simulator.bm1684x.vector import convert, functions, special
from bmcompiler.runtime.simulator.bm1684x.vector import integers as vector
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind

FOLDER = Path(__file__).parent / "data/numbers"
Case = tuple[str, Callable[[], Any]]
SMALL = ("i8", "u8", "i16", "u16", "i32")
NUMPY = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
LONGEST = 60


def digest(compute: Callable[[], Any]) -> str:
    """Of the array that is computed, or why it is not."""
    try:
        with np.errstate(all="ignore"):
            found = compute()
    except (BMError, ValueError) as error:
        return str(error)[:LONGEST]
    told = blake2b(digest_size=5)
    array = np.asarray(found)
    told.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return told.hexdigest()


def of_shifts() -> Iterator[Case]:
    for dtype in ("int8", "int16", "int32", "int64"):
        x, bits = integers(dtype), 8 * np.dtype(dtype).itemsize
        for mode, shift in product(Rounding, (0, 1, 2, 3, 7, bits - 2, bits - 1)):
            yield f"shift_right {dtype} {shift} {mode.name}", partial(shift_right, x, shift, mode)
        for mode in Rounding:
            amounts = np.arange(bits, dtype=np.int16)[:, None]
            yield f"shift_right {dtype} each {mode.name}", partial(shift_right, x[None], amounts, mode)
        for shift, to in product((0, 1, 4, bits - 1), SMALL):
            yield f"requantize {dtype} {shift} {to}", partial(arith.requantize, x, shift, to)
        for to in SMALL:
            amounts = np.arange(-1 if to == "u16" else 0, bits)[:, None]
            yield f"requantize {dtype} each {to}", partial(arith.requantize, x[None], amounts, to)
    finite = floats()[np.isfinite(floats())]
    for mode in (*Rounding, 7):
        yield f"whole {mode}", partial(whole, floats(), mode)
        yield f"whole of doubles {mode}", partial(whole, finite.astype(np.float64), mode)


def of_quantization() -> Iterator[Case]:
    x, sums = floats(), integers("int32")
    finite = x[np.isfinite(x)]
    for to in SMALL:
        yield f"saturate {to}", partial(arith.saturate, finite, to)
        for kind in NUMPY:
            yield f"saturate {kind} {to}", partial(arith.saturate, integers(kind), to)
        for threshold in (128.0, 0.37):
            yield f"quantize_real {threshold} {to}", partial(arith.quantize_real, finite, threshold, to)
    for kind, size in product("iu", (1, 2, 4, 8)):
        yield f"truncate {kind}{size}", partial(arith.truncate, x, np.dtype(f"{kind}{size}"))
    yield "apart", partial(factors.apart, np.abs(finite)[np.abs(finite) < 2**31 - 1])
    yield "apart below powers of two", partial(factors.apart, 2.0 ** np.arange(-30, 31) * (1 - 2.0**-34))
    rows = factors.apart([0.0, 1e-9, 0.003, 0.5, 0.999999999, 1 - 2.0**-34, 1.0, 3.7, 2.0**30])
    yield "real", partial(factors.real, rows)
    for to, zero in product(SMALL[:3], (0, -3, 100)):
        for multiplier, shift in rows.tolist():
            yield (f"factor {multiplier} {shift} {zero} {to}",
                   partial(factors.requantize, sums, np.int64(multiplier), np.int64(shift), to, zero))  # fmt: skip
    for to, factor, offset in product(("i8", "u8", "i16"), (0.5, 2.0**-9, 0.3), (0.0, 0.5, -7.25)):
        yield (f"real factor {factor} {offset} {to}",
               partial(factors.requantize_real, sums, np.float32(factor), np.float32(offset), to))  # fmt: skip
    scales = (2.0**-31, 2.0**-9, 0.013, 0.5, 0.75, 1.0, 1.5, 100.25, 2.0**23)
    for scale, floor, to in product(scales, (False, True), ("i8", "u8", "i16", "u16")):
        how, bias = quant_modes.rescale(scale, floor=floor), np.array([[-1000], [0], [77], [70000]], np.int32)
        yield f"rescale {scale} {floor}", partial(np.array, [how.scale, how.shift, how.residual, how.multiplier])
        yield f"low {scale} {floor} {to}", partial(quant_modes.low, sums, how, to)
        yield f"high {scale} {floor} {to}", partial(quant_modes.high, sums, how, to, bias)
        crossed = None if floor else sums[::-1]
        yield (f"asymmetric {scale} {floor} {to}",
               partial(quant_modes.asymmetric, sums, crossed, how, to, bias.astype(np.float32), 5))  # fmt: skip
    for function, scale, zero, to in product(("quantize_even", "quantize_away"), (1.0, 0.3), (0, 9), SMALL[:4]):
        yield f"{function} {scale} {zero} {to}", partial(getattr(quant_modes, function), x, scale, to, zero)


def of_floats() -> Iterator[Case]:
    x, a, b = floats(), few_floats()[:, None], few_floats()[None]
    for name in ("add", "subtract", "multiply", "maximum", "larger", "minimum"):
        yield f"fp32.{name}", partial(getattr(fp32, name), a, b)
    for rounds in (1, 3):
        yield f"fp32.divide {rounds}", partial(fp32.divide, a, b, rounds)
        yield f"fp32.rsqrt {rounds}", partial(fp32.rsqrt, x, rounds)
    yield "fp32.flush", partial(fp32.flush, x)
    yield "fp32.to_int", partial(fp32.to_int, x)
    for name in ("nearest_exponent", "nearest_power"):
        yield f"fp32.{name}", partial(getattr(fp32, name), x.view(np.int32))
    for count, name in product((1, 2, 5), ("plain", "special", "zeros")):
        steps = matrix(count, 5, special=name == "special")[:count] * (name != "zeros")
        yield f"fp32.taylor {count} {name}", partial(fp32.taylor, x, steps)
        yield f"fp32.horner {count} {name}", partial(fp32.horner, x, steps)
        yield f"fp32.horner of channels {count} {name}", partial(fp32.horner, x[None], steps[:, None, None])
    for kind, half in ((types.FP16, FP16), (types.BF16, BF16), (types.FP32, None)):
        stored = few_floats() if half is None else halves()
        names = ("add", "subtract", "multiply", "greater", "equal", "less", "maximum", "minimum", "distance")
        for name in names:
            yield f"{kind.name}.{name}", partial(getattr(kind, name), stored[:, None], stored[None])
        if half is not None:
            every = np.arange(1 << 16, dtype=np.uint16)
            for name in ("widen", "cast"):
                yield f"{kind.name}.{name}", partial(getattr(half, name), every)
            yield f"{kind.name}.narrow", partial(half.narrow, x)
            yield f"{kind.name}.horner", partial(kind.horner, stored, halves()[:9:2])
            yield f"{kind.name}.horner of many", partial(kind.horner, np.resize(stored, (1 << 16) + 1), halves()[3:9:2])
    for mode, name in product(Rounding, ("to_fp16", "to_bf16")):
        yield f"{name} {mode.name}", partial(getattr(narrowing, name), x, mode)


def of_sums() -> Iterator[Case]:
    sizes = ((1, 1, 1), (5, 3, 4), (33, 2, 70), (70, 40, 17), (67, 600, 3))
    for special_, (depth, m, n) in product((False, True), sizes):
        a, b = matrix(depth, depth, m, special=special_), matrix(n, depth, n, special=special_)
        start, name = matrix(7, m, n, special=special_), f"{depth}x{m}x{n}{' special' * special_}"
        for count in (2, 4):
            yield f"ordered {name} {count}", partial(ordered.ordered_product, a, b, count)
            yield f"ordered onto {name} {count}", partial(ordered.ordered_product, a, b, count, start)
        yield f"two_sums {name}", partial(ordered.two_sums, a, b, start[:, :1], start)
        yield f"two_sums without old {name}", partial(ordered.two_sums, a, b, start[:, :1])
        groups = [min(32, depth - k) for k in range(0, depth, 32)]
        for half in (FP16, BF16):
            left, right = (half.widen(half.narrow(values)) for values in (a, b))
            yield f"fused {half.name} {name}", partial(fused.fused_product, left, right, groups, start)
            yield (f"half_product {half.name} {name}",
                   partial(half_products.half_product, left, right, groups, start, half))  # fmt: skip
            rows, columns = np.arange(m).repeat(n), np.tile(np.arange(n), m)
            yield (f"pairs {half.name} {name}",
                   partial(fused.fused_pairs, left, right, groups, start, rows, columns))  # fmt: skip
        yield f"chosen {name}", partial(sampled.chosen, a)
    for one, other in product(("int8", "uint8", "int16", "uint16", "int32"), repeat=2):
        column, row = (integers(each)[-40:] for each in (one, other))
        depths = np.resize(column, (7, 40)), np.resize(row, (40, 9))
        yield f"matmul {one} {other}", partial(arith.matmul, *depths)
        x, weight = np.resize(column, (2, 4, 6, 5)), np.resize(row, (6, 2, 3, 2))
        how: dict[str, Any] = {"strides": (2, 1), "dilations": (1, 2), "pads": (1, 0, 2, 1), "groups": 2}
        yield f"conv2d {one} {other}", partial(arith.conv2d, x, weight, **how)
    for dtype, step in product(("int8", "uint8"), (-1, 0, 1, 2)):
        most = max(map(abs, (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))))
        deepest = np.full((1, (1 << 31) // most**2 + step), -128 if dtype == "int8" else 255, dtype)
        yield f"matmul of as much as 32 bits hold {dtype} {step}", partial(arith.matmul, deepest, deepest.T)


KINDS = [Kind(precision, signed) for precision in Precision for signed in (False, True)
         if precision.name in ("INT8", "INT16", "INT32", "FP16", "BF16", "FP32")
         and (signed or precision.name.startswith("INT"))]  # fmt: skip


def stored(kind: Kind) -> Any:
    """Elements of a type as memory has them."""
    if kind.precision == Precision.FP32:
        return floats()
    return halves() if kind.is_float else integers(kind.dtype.name)


def of_vectors() -> Iterator[Case]:
    def converted(source: Kind, target: Kind, mode: int) -> Any:
        return convert.converter(source, target, mode, lambda: stored(source))()

    for source, target, mode in product(KINDS, KINDS, range(8)):
        yield f"convert {source} {target} {mode}", partial(converted, source, target, mode)
    for code in range(16):
        yield f"rounding_of {code}", partial(vector.rounding_of, code)
    for one, other in product(NUMPY, repeat=2):
        for operation in (np.add, np.subtract, np.multiply):
            ends = integers(one)[-45:, None], integers(other)[None, :45]
            yield f"exact {operation.__name__} {one} {other}", partial(vector.exact, operation, *ends)
    for name, mode in product(NUMPY[:6:2], Rounding):
        yield f"high_product {name} {mode}", partial(vector.high_product, *pairs(name), mode)
        yield (f"multiplied_onto {name} {mode}",
               partial(vector.multiplied_onto, *pairs(name), pairs(name)[0], 3, 5, mode, np.dtype(name)))  # fmt: skip
    for name in NUMPY:
        x = integers(name)
        bits = np.dtype(f"u{x.dtype.itemsize}")
        for function in ("leading_zeros", "leading_ones"):
            yield f"{function} {name}", partial(getattr(vector, function), x.view(bits))
        yield f"rotated {name}", partial(vector.rotated, x.view(bits), np.arange(-40, 41, dtype=np.int8)[:, None])
        for to, mode, saturating in product(NUMPY, (0, 1, 2, 3, 4, 5, 6), (False, True)):
            amounts = np.array([-31, -8, -7, -1, 0, 1, 7, 8, 31, -33, -63][: 9 + 2 * (mode % 2)])[:, None]
            yield (f"shifted {name} {to} {mode} {saturating}",
                   partial(vector.shifted, x, amounts, mode, np.dtype(to), saturating=saturating))  # fmt: skip
        for to, relu in product(NUMPY, (False, True)):
            yield f"requantized {name} {to} {relu}", partial(requantized, x, 3, Rounding.HALF_UP, np.dtype(to), relu)
    for amount in (-64, -63, 31, 32):
        words = integers("int32")
        yield f"shifted by {amount}", partial(vector.shifted, words, amount, 0, words.dtype, saturating=True)


def of_operations() -> Iterator[Case]:
    """Operations of the BM1684X for operands of every type."""

    def run(unit: Ar, a: Kind, b: Kind, result: Kind) -> Any:
        x, y = (stored(each)[:: 1 + len(stored(each)) // 50] for each in (a, b))
        x, y = np.ascontiguousarray(x)[:, None], np.ascontiguousarray(y)[None]
        if unit in functions.SELECTIONS:
            value = np.array(0x7F, result.bits)
            return functions.selection(unit, a, b, result.precision, value)(x, y)
        return functions.function_of(unit, a, b, result.precision, 1)(x, y)

    def results(unit: Ar, a: Kind, b: Kind) -> Any:
        told = [digest(partial(run, unit, a, b, result)) for result in KINDS]
        return np.array(told)

    for unit, a, b in product(Ar, KINDS, KINDS):
        yield f"{unit.name} {a} {b}", partial(results, unit, a, b)
    for kind in KINDS:
        bits = stored(kind).view(kind.bits)
        for name in ("biased_exponent", "power_of_two"):
            if kind.is_float:
                yield f"{name} {kind}", partial(getattr(special, name), bits, kind)


def of_transfers_and_stages() -> Iterator[Case]:
    """Conversions of the BM1684's GDMA; stages of the DV700."""

    def activated(kind: int, param: int) -> Any:
        """As halves: the last bits of exponentials are those of the processor."""
        return stages.to_half(stages.activate(floats(), kind, param))

    for (source, target), function in gdma._CONVERSIONS.items():
        values = {np.float32: floats(), np.float16: halves().view(np.float16)}
        x = values.get(gdma._DTYPES[source].type, np.arange(-128, 128).astype(gdma._DTYPES[source]))
        yield f"gdma {source} {target}", partial(function, x)
    yield "dv to_half", partial(stages.to_half, floats())
    for kind, param in product(range(8), (0, 0x3C00, 0xB800, 0x4600)):
        yield f"dv activate {kind} {param}", partial(activated, kind, param)


TABLES = (of_shifts, of_quantization, of_floats, of_sums, of_vectors, of_operations, of_transfers_and_stages)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__.removeprefix("of_"))
def test_special_numbers_become_what_was_recorded(
    table: Callable[[], Iterator[Case]], golden: Callable[[Path, str], None]
) -> None:
    lines = [f"{name}: {digest(compute)}" for name, compute in table()]
    golden(FOLDER / f"{table.__name__.removeprefix('of_')}.txt", "\n".join([*lines, ""]))
