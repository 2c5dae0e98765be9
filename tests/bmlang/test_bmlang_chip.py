"""Every operator compiled for the BM1684: the simulator gives the bits of the eager result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bmlang_samples import NAMES, ROWS, Case, call, called, combinations, given_to, variants

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    COMPUTE_CPU,
    INT16,
    INT32,
    TABLE,
    UINT16,
    Arithmetic,
    Compilation,
    ConvParam,
    QCalMode,
    Tensor,
)
from bmcompiler.frontends.bmlang.numbers import numpy_type
from bmcompiler.frontends.bmlang.typings import accepted

ON_THE_HOST = {row.name for row in TABLE.values() if row.host}
POINTS = ("left_zero_point", "right_zero_point", "output_zero_point")
TOGETHER = 16
"""Calls in a program."""


def cases(name: str) -> list[Case]:
    row = ROWS[name]
    typing = row.typing("BM1684")
    return [
        (variant, ins, outs)
        for variant in variants(row)
        for ins, outs in combinations(row)
        if accepted(typing, variant, ins, outs, False)
    ]


def check(name: str, chosen: Sequence[Case], folder: Path, level: int, seed: int) -> Compilation:
    """Compile calls of one operator as one program.

    Chip, eager chip arithmetic and eager framework arithmetic agree.
    """
    given = given_to(name, chosen, seed)
    with bmlang.init(BOTH, "BM1684", folder, arithmetic=Arithmetic.CHIP) as program:
        made = called(name, given, chosen)
        compiled = program.compile_with_check("one", program.inputs, [one for each in made for one in each], level)
        assert not any(compiled.errors.values()), (chosen, compiled.errors)
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        for chips, one, case in zip(made, given, chosen) if name != "sequence_gen" else ():
            for chip, exact in zip(chips, call(name, one, case[2])):
                same(chip.get_data(), exact.get_data(), case)
    return compiled


def same(got: Any, want: Any, case: Case) -> None:
    """Integers are equal; the chip's functions of floats are a few units in the last place off."""
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, str(case))
    else:
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=str(case))


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_chip_commands_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """One choice of types for every variant, and one of 8 or 16 bits where there is one."""
    chosen: dict[tuple[str, bool], Case] = {}
    for case in cases(name):
        chosen.setdefault((case[0], case[1][0].is_integer), case)
    for case in chosen.values():
        compiled = check(name, [case], tmp_path, 0, 1)
        assert bool(compiled.host) == (name in ON_THE_HOST), compiled.host


def test_at_least_95_operators_are_commands() -> None:
    assert len(TABLE) - len(ON_THE_HOST) >= 95


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_choice_of_types_has_the_same_bits(name: str, tmp_path: Path) -> None:
    """Several in a program: each is alone in one above, and a program of one call takes as long as one of all."""
    every = cases(name)
    for seed in range(0, len(every), TOGETHER):
        chosen = every[seed : seed + TOGETHER]
        compiled = check(name, chosen, tmp_path, 2, seed)
        on_the_host = {row.layer for row in compiled.host}
        assert len(on_the_host) >= len(chosen) if name in ON_THE_HOST else not on_the_host, (chosen, on_the_host)


@pytest.mark.parametrize("name", ["arith_lshift", "arith_rshift", "round_rshift"])
@pytest.mark.parametrize("dtype", [INT16, INT32])
def test_counts_of_any_size_shift_as_far_as_they_say(name: str, dtype: Any, tmp_path: Path) -> None:
    if (name, dtype) == ("round_rshift", INT32):
        return
    counts = np.array([[-40000, -64, -33, -32, -31, -17, -16, -15, -1, 0, 1, 15, 16, 17, 31, 32, 33, 64, 40000]])
    kind = np.int16 if dtype == INT16 else np.int32
    places = Tensor(data=np.clip(counts, -32768, 32767).astype(kind))
    x = Tensor(data=np.tile(np.array([[-32768], [-1], [0], [1], [12345], [32767]], kind), counts.size))
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        out = getattr(bmlang, name)(x, places)
        compiled = program.compile_with_check("shifts", program.inputs, [out])
    assert not compiled.host
    bits = 8 * np.dtype(kind).itemsize
    for (row, column), got in np.ndenumerate(out.get_data()):
        value, count = int(x.get_data()[row, column]), int(places.get_data()[0, column])
        assert got == by_hand(name, value, count, bits)


def by_hand(name: str, value: int, count: int, bits: int) -> int:
    if name == "round_rshift":
        return value if count <= 0 else ((value >> (count - 1)) + 1) >> 1
    left = count if name == "arith_lshift" else -count
    moved = value << min(left, 100) if left >= 0 else value >> min(-left, 100)
    return (moved + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def test_outputs_that_are_inputs_or_come_twice_are_copied_in_the_same_subnet(tmp_path: Path) -> None:
    """The vendor's runtime runs no two subnets of the device one after the other, and finds tensors by their names."""
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x, y = (Tensor(name, data=np.arange(12, dtype=np.int16).reshape(3, 4)) for name in "xy")
        same, larger = bmlang.copy(x, Tensor("same")), bmlang.max(x, y, Tensor("larger"))
        again = bmlang.reshape(larger, [12], name="again")
        compiled = program.compile_with_check("copies", [x, y], [same, larger, again])
    ((_, stage),) = compiled.result.model.all_stages()
    (subnet,) = stage.subnets
    assert {tensor.name for tensor in subnet.inputs} == {"x", "y"}
    assert {tensor.name for tensor in subnet.outputs} == {"same", "larger", "again"}


@pytest.mark.parametrize("name", ["mul_shift", "add_shift", "sub_shift"])
def test_every_shift_is_on_the_chip_for_all_types(name: str, tmp_path: Path) -> None:
    """Also where adding the half that rounds would leave the exact integers of float32."""
    rng = np.random.default_rng(0)
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        outputs = []
        for index, (_, ins, outs) in enumerate(cases(name)):
            x, y = (Tensor(data=ends(rng, numpy_type(dtype), turn)) for turn, dtype in enumerate(ins))
            outputs.append(getattr(bmlang, name)(x, y, (1, 16, 17, 18, 24, 25, 31)[index % 7], dtype=outs[0]))
        assert not program.compile_with_check("shifts", program.inputs, outputs, 0).host


def ends(rng: np.random.Generator, kind: Any, turn: int) -> Any:
    """Random integers, and all pairs of the lowest and highest with another tensor of the other `turn`."""
    limits = np.iinfo(kind)
    low, high = int(limits.min), int(limits.max)
    array = rng.integers(low, high, (2, 3, 4), endpoint=True).astype(kind)
    array.flat[:4] = [low, high] * 2 if turn else [low, low, high, high]
    return array


@pytest.mark.parametrize("axes", [[2, 3], [1, 3], [0, 2]])
def test_products_along_any_axes(axes: list[int], tmp_path: Path) -> None:
    """More factors than float32 can hold: 0 where one is 0, else saturated."""
    data = np.full((2, 3, 5, 6), 127, np.int8)
    data[0, 0, 4, 5], data[1, 2, 0, 0], data[1, 1] = 0, -1, 1
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        floats = np.random.default_rng(0).normal(size=data.shape).astype(np.float32)
        x, real = Tensor("x", data=data), Tensor("real", data=floats)
        param = bmlang.ReduceParam(bmlang.ReduceMethodType.REDUCE_PROD, axes)
        outputs = [bmlang.reduce(x, param), bmlang.reduce(real, param)]
        assert not program.compile_with_check("products", [x, real], outputs).host
    exact = np.prod(data.astype(object), axis=tuple(axes), keepdims=True)
    assert outputs[0].get_data().tolist() == np.clip(exact, -128, 127).tolist()


@pytest.mark.parametrize("mode", [QCalMode.HighPrecisionSymmetric, QCalMode.HighPrecisionAsymmetric])
def test_depthwise_convolutions_of_high_precision_are_computed_in_float(mode: QCalMode, tmp_path: Path) -> None:
    """255 x 255 is beyond 16 bits with a sign, where the other convolutions saturate (seed 003, conv)."""
    x = np.full((1, 3, 4, 5), 255, np.uint8)
    weight = np.stack([np.full((1, 1, 1), number, np.uint8) for number in (255, 7, 100)])
    points = (0, 100, 9) if mode == QCalMode.HighPrecisionAsymmetric else (0, 0, 0)
    param = ConvParam(groups=3, scale=1.0, mode=mode, **dict(zip(POINTS, points)))
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        found = bmlang.conv([Tensor(data=x), Tensor(data=weight)], param, dtype=UINT16)
        program.compile_with_check("one", program.inputs, [found])
    numbers = [255 * (number - points[1]) + points[2] for number in (255, 7, 100)]
    for channel, number in enumerate(numbers):
        assert (found.get_data()[0, channel] == max(0, number)).all()
