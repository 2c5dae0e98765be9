"""BMLang programs that the vendor's runtime judges: each operator in all its element types, and a few of many.

Programs of one operator come from the samples of its tests, and hold a call for each choice of types that the BM1684
takes, all modes of products and functions of `active` among them. Those for the BM1684X are what it has beyond that,
choices with floats of 16 bits. Operators that the host computes have none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    TABLE,
    UINT8,
    ActiveType,
    Compilation,
    ConvParam,
    MatrixMulParam,
    PoolParam,
    PoolType,
    QCalMode,
    ReduceMethodType,
    ReduceParam,
    Tensor,
)
from bmcompiler.frontends.bmlang.numbers import numpy_type
from bmcompiler.frontends.bmlang.typings import ALL, HALVES, accepted

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "bmlang"))

from bmlang_samples import arguments, call, combinations, variants
from random_programs import Writer

MOST_CALLS = 24
"""Calls of one program; the vendor's runner takes longer with more tensors."""
RANDOM = 20
"""Random programs."""
Outputs = list[Tensor]
Make = Callable[[np.random.Generator], Outputs]


@dataclass
class Judged:
    """A compiled program, the numbers it is given, and what it computes on the host."""

    made: Compilation
    inputs: dict[str, NDArray[Any]]
    calls: int


def names() -> list[str]:
    """All programs."""
    return [*COMPOSED, *(name for name, row in TABLE.items() if not row.host and name != "constdata")]


def compile_program(name: str, folder: Path, opt: int, chip: str = "BM1684") -> Iterator[Judged]:
    """The programs called `name`, one after the other. Raises BMError."""
    makers = [COMPOSED[name]] if name in COMPOSED else list(_of_operator(name, chip))
    for make in makers:
        with bmlang.init(BOTH, chip, folder) as program:
            outputs = make(np.random.default_rng(1))
            calls = program.calls
            made = program.compile(name, opt, outputs=outputs)
            inputs = {key: tensor.get_data() for key, tensor in zip(made.inputs, program.inputs)}
        yield Judged(made, inputs, calls)


# -- one operator ------------------------------------------------------------------------------------------------------
def _of_operator(name: str, chip: str) -> Iterator[Make]:
    row = TABLE[name]
    halves = HALVES if chip == "BM1684X" else ()
    cases = [
        (variant, ins, outs)
        for variant in variants(row)
        for of in ([(*ALL, half) for half in halves] or [ALL])
        for ins, outs in combinations(row, of)
        if accepted(row.typing(chip), variant, ins, outs, False) and (not halves or of[-1] in (*ins, *outs))
    ]
    for start in range(0, len(cases), MOST_CALLS):

        def make(rng: np.random.Generator, some: Any = cases[start : start + MOST_CALLS]) -> Outputs:
            return [out for case in some for out in _called(name, case, rng)]

        yield make


def _called(name: str, case: Any, rng: np.random.Generator) -> Iterator[Tensor]:
    variant, ins, outs = case
    for out in call(name, arguments(TABLE[name], ins, outs, variant, rng), outs):
        if name in ("sequence_gen", "shape_fetch", "number_like"):  # constants: a program computes with them
            yield bmlang.concat([out, Tensor(data=out.get_data())], 0)
        else:
            yield out


# -- many operators ----------------------------------------------------------------------------------------------------
COMPOSED: dict[str, Make] = {}


def composed(make: Make) -> Make:
    """Register a program under the name of its function."""
    COMPOSED[make.__name__] = make
    return make


def _data(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = None) -> Any:
    if dtype is None:
        return rng.normal(0, 1, shape).astype(np.float32)
    limits = np.iinfo(numpy_type(dtype))
    return rng.integers(max(limits.min, -(1 << 20)), min(limits.max, 1 << 20), shape, endpoint=True).astype(
        limits.dtype
    )


def _constant(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
    return bmlang.constdata(Tensor(data=_data(rng, shape, dtype)))


def _quantized_layers(rng: np.random.Generator, mode: QCalMode) -> Outputs:
    """Two convolutions, a depthwise one, pooling, and a matrix product of bytes."""
    asymmetric = mode == QCalMode.HighPrecisionAsymmetric
    zero = dict(left_zero_point=3, right_zero_point=-2, output_zero_point=5) if asymmetric else {}
    first = ConvParam(1, 1, 1, 1, 1, 1, 2, 2, 1, scale=0.004, mode=mode, **zero)
    x = Tensor("x", data=_data(rng, (2, 3, 20, 22), INT8))
    wide = INT16 if mode == QCalMode.LowPrecisionSymmetric else INT32
    y = bmlang.conv([x, _constant(rng, (16, 3, 3, 3), INT8), _constant(rng, (1, 16, 1, 1), wide)], first, dtype=INT8)
    y = bmlang.conv([y, _constant(rng, (16, 1, 3, 3), INT8)], replace(first, groups=16, stride_h=1), dtype=INT8)
    y = bmlang.pool(y, PoolParam(2, 2, kernel_h=2, kernel_w=2))
    last = ConvParam(scale=0.003, mode=mode, **zero)
    y = bmlang.conv([y, _constant(rng, (32, 16, 1, 1), INT8)], last, dtype=INT8)
    rows = bmlang.reshape(y, [2, -1])
    right = _constant(rng, (int(np.prod(rows.shape or ())) // 2, 10), INT8)
    return [rows, bmlang.matrix_mul([rows, right], MatrixMulParam(0.0007, mode, **zero), dtype=INT8)]


def _random(seed: int) -> Make:
    """Ten random operators on random inputs, every second program with floats; on the BM1684X of floats alone."""

    def make(rng: np.random.Generator) -> Outputs:
        program = bmlang.current()
        types = (FLOAT32, *HALVES) if program.chip == "BM1684X" else bool(seed % 2)
        made = dict.fromkeys(Writer(seed, types).program(10))
        return [tensor for tensor in made if tensor not in program.inputs and program.recorded(tensor) is not None]

    return make


COMPOSED |= {f"random{seed}": _random(seed) for seed in range(RANDOM)}


@composed
def inputs_returned(rng: np.random.Generator) -> Outputs:
    """Results that are an input, or one result twice."""
    x, y = (Tensor(name, data=_data(rng, (2, 3, 4, 5), INT16)) for name in "xy")
    larger = bmlang.max(x, y)
    return [bmlang.copy(x), larger, bmlang.reshape(larger, [-1]), bmlang.squeeze(y)]


@composed
def layers_low(rng: np.random.Generator) -> Outputs:
    return _quantized_layers(rng, QCalMode.LowPrecisionSymmetric)


@composed
def layers_high(rng: np.random.Generator) -> Outputs:
    return _quantized_layers(rng, QCalMode.HighPrecisionSymmetric)


@composed
def layers_asymmetric(rng: np.random.Generator) -> Outputs:
    return _quantized_layers(rng, QCalMode.HighPrecisionAsymmetric)


@composed
def local_chain(rng: np.random.Generator) -> Outputs:
    """30 local operators of floats."""
    x, y = (Tensor(name, data=_data(rng, (1, 32, 14, 14))) for name in "xy")
    z = x
    for _ in range(10):
        z = bmlang.max(bmlang.sub(z, y), y)
        z = bmlang.mul(z, y)
    return [z]


@composed
def local_chain_of_bytes(rng: np.random.Generator) -> Outputs:
    x, y = (Tensor(name, data=_data(rng, (4, 32, 14, 14), INT8)) for name in "xy")
    z = x
    for shift in range(10):
        z = bmlang.max(bmlang.sub_shift(z, y, shift % 3), y)
        z = bmlang.mul_shift(z, y, 5)
    return [z]


@composed
def softmax_and_norm(rng: np.random.Generator) -> Outputs:
    """Softmax over rows, then each row to mean 0 and deviation 1."""
    x = Tensor("x", data=_data(rng, (1, 6, 10, 32)) * 4)
    last = [ReduceParam(method, [3]) for method in (ReduceMethodType.REDUCE_MAX, ReduceMethodType.REDUCE_SUM)]
    powers = bmlang.active(x - bmlang.reduce(x, last[0]), ActiveType.ACTIVE_EXP)
    y = powers / bmlang.reduce(powers, last[1])
    centred = y - bmlang.reduce(y, ReduceParam(axis_list=[3]))
    spread = bmlang.reduce(bmlang.active(centred, ActiveType.ACTIVE_SQUARE), ReduceParam(axis_list=[3]))
    return [y, centred * bmlang.active(spread + 1e-5, ActiveType.ACTIVE_RSQRT)]


@composed
def image_preparation(rng: np.random.Generator) -> Outputs:
    """A picture of bytes: cut, mirrored planes, normalised, enlarged, quantized again."""
    x = Tensor("x", data=_data(rng, (1, 24, 30, 3), UINT8))
    part = bmlang.extract(bmlang.permute(x, [0, 3, 1, 2]), [0, 0, 2, 3], [1, 3, 22, 29], [1, 1, 1, 2])
    real = bmlang.cast(part, dtype=np.float32)
    y = (real - _constant(rng, (1, 3, 1, 1))) * 0.017
    wide = bmlang.upsample(bmlang.pad(y, 0.5, [0, 0, 0, 0, 1, 2, 3, 0]), 2)
    return [wide, bmlang.cast(wide * 50.0, dtype=np.int8), bmlang.interleave(y, y * 2.0, 3, 1)]


@composed
def boxes_from_scores(rng: np.random.Generator) -> Outputs:
    """What follows a detector: centres and sizes to corners, the best class, scores below a threshold to 0."""
    boxes, scores = Tensor("boxes", data=_data(rng, (40, 4))), Tensor("scores", data=_data(rng, (40, 8)))
    x, y, w, h = bmlang.split(boxes, 1, 4)
    half = [bmlang.active(size, ActiveType.ACTIVE_EXP) * 0.5 for size in (w, h)]
    corners = bmlang.concat([y - half[1], x - half[0], y + half[1], x + half[0]], 1)
    rated = bmlang.active(scores, ActiveType.ACTIVE_SIGMOID)
    best = bmlang.reduce(rated, ReduceParam(ReduceMethodType.REDUCE_MAX, [1]))
    kept = bmlang.condition_select(bmlang.gts(best, 0.7), best, _constant(rng, (1, 1)))
    return [corners, kept, bmlang.arg(rated, bmlang.ArgParam(1))]


@composed
def fixed_point_filter(rng: np.random.Generator) -> Outputs:
    """16-bit fixed point: products, shifts by numbers and by tensors, bits, tables, means."""
    x = Tensor("x", data=_data(rng, (2, 8, 12, 12), INT16))
    counts = Tensor("counts", data=rng.integers(-3, 9, (1, 8, 1, 1)).astype(np.int16))
    y = bmlang.muls_shift(x, -77, 6)
    y = bmlang.add_shift(y, bmlang.arith_rshift(x, counts), 1)
    small = bmlang.round_rshift(y, counts, dtype=INT8)
    table = bmlang.lut(small, _constant(rng, (256,), INT8))
    means = bmlang.pool(table, PoolParam(2, 2, 1, 1, 0, 0, 3, 3, PoolType.AVE))
    return [y, bmlang.bit_xor(y, x), table, means, bmlang.reduce(means, ReduceParam(axis_list=[2, 3]))]
