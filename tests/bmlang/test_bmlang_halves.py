"""FLOAT16 and BFLOAT16, which the BM1684X has: every operator with floats in both, what they hold, who refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bmlang_samples
import ml_dtypes
import numpy as np
import pytest
from bmlang_samples import ROWS, WITH_WEIGHTS, Case, Types, call, called, combinations, given_to, values, variants
from expected_types import allowed
from random_programs import Writer

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BFLOAT16,
    BOTH,
    COMPUTE_CPU,
    FLOAT16,
    FLOAT32,
    INT8,
    INT32,
    TABLE,
    UINT8,
    ActiveType,
    Arithmetic,
    Compilation,
    ConvParam,
    DataType,
    PoolParam,
    PoolType,
    ReduceMethodType,
    ReduceParam,
    Scalar,
    Tensor,
)
from bmcompiler.errors import RuntimeUseError, UsageError
from bmcompiler.frontends.bmlang.numbers import largest, numpy_type
from bmcompiler.frontends.bmlang.typings import EVERY, accepted
from bmcompiler.ops.base import TensorOp
from bmcompiler.runtime import Session

CHIP = "BM1684X"
HALVES = (FLOAT16, BFLOAT16)
BITS = {FLOAT32: 24, FLOAT16: 11, BFLOAT16: 8}
"""Of a number."""
ON_THE_HOST = {row.name for row in TABLE.values() if row.host}
TAKES_FLOATS = [name for name, row in ROWS.items() if "F" in row.typing(CHIP) and name != "constdata"]
TOGETHER = 24


def cases(name: str, half: DataType) -> list[Case]:
    row, of = ROWS[name], [dtype for dtype in EVERY if dtype not in HALVES or dtype == half]
    return [
        (variant, ins, outs)
        for variant in variants(row)
        for ins, outs in combinations(row, tuple(of))
        if half in (*ins, *outs) and accepted(row.typing(CHIP), variant, ins, outs, False)
    ]


# -- element types -----------------------------------------------------------------------------------------------------
def wanted(name: str, variant: str, ins: Types, outs: Types) -> bool:
    """Where FLOAT32 may stand, a 16-bit float may; floats that are computed with have one type.

    Apart from thresholds of boxes and positions, which stay FLOAT32, and scales of integers' products.
    """
    as_single = [tuple(FLOAT32 if dtype in HALVES else dtype for dtype in each) for each in (ins, outs)]
    floats = {dtype for dtype in (*ins, *outs) if not dtype.is_integer}
    if name == "cast" and not ins[0].is_integer and not outs[0].is_integer:
        return ins != outs
    if not allowed(name, "BM1684", variant, as_single[0], as_single[1]):
        return False
    if name in ("arg", "argsort"):
        return outs[0] not in HALVES
    if name in ("nms", "nms_v2"):
        return ins[0] == ins[1] and not {*ins[2:]} & {*HALVES}
    if name in ("conv", "deconv") and ins[0].is_integer:
        return not floats & {*HALVES}
    if name in ("pad", "pad_v2"):
        return ins[0] == outs[0]
    if name == "condition_select":
        return ins[1] == ins[2] == outs[0]
    if name == "select":
        return ins[0] == ins[1] and ins[2] == ins[3] == outs[0]
    if name == "masked_select":
        return ins[0] == outs[0]
    if name in ("number_like", "lut"):
        return ins[1] == outs[0]
    return len(floats) < 2 or name == "customed_ops"


@pytest.mark.parametrize("name", [name for name in TABLE if name != "constdata"])
def test_types_are_taken_wherever_float32_is(name: str) -> None:
    row = TABLE[name]
    typing = row.typing(CHIP)
    several = len(row.typed) > 3  # of select all choices would be many
    of = (FLOAT32, *HALVES, INT8, INT32) if several else EVERY
    for variant in variants(row):
        for ins, outs in combinations(row, of):
            assert accepted(typing, variant, ins, outs, False) == wanted(name, variant, ins, outs), (variant, ins, outs)


@pytest.mark.parametrize("chip", ["BM1682", "BM1684"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_other_chips_refuse_them_and_say_which_has_them(chip: str, kind: str) -> None:
    x = Tensor(data=np.ones((2, 3), bmlang_type(kind)))
    with bmlang.init(COMPUTE_CPU, chip), pytest.raises(UsageError) as error:
        bmlang.add(x, x)
    assert f"add on {chip}: tensor_i0 must not be {kind.upper()}; allowed: FLOAT32" in str(error.value)
    assert "the BM1684X has FLOAT16 and BFLOAT16" in str(error.value)
    with bmlang.init(COMPUTE_CPU, chip), pytest.raises(UsageError, match="BM1684X has"):
        bmlang.cast(Tensor(data=[1.0]), dtype=kind)


def bmlang_type(kind: str) -> Any:
    return numpy_type(DataType[kind.upper()])


def test_floats_of_two_types_do_not_meet_without_a_cast() -> None:
    x, y = Tensor(data=np.ones(3, np.float16)), Tensor(data=np.ones(3, np.float32))
    with bmlang.init(COMPUTE_CPU, CHIP):
        with pytest.raises(UsageError, match=r"tensor_i1 must not be FLOAT32; .*cast") as error:
            bmlang.add(x, y)
        assert "\n" not in str(error.value)
        assert (x + bmlang.cast(y, dtype=FLOAT16)).dtype == FLOAT16
        with pytest.raises(UsageError, match="Remedy: a plain number has the type of the tensor"):
            bmlang.muls(x, Scalar(0.1))
        assert (x * 0.1).get_data().tolist() == [np.float16(0.1)] * 3
        with pytest.raises(UsageError, match="scalar 70000 is no FLOAT16 number, as it must be beside FLOAT16"):
            x * 70000


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_tensors_and_scalars_hold_what_the_types_hold() -> None:
    bf16 = np.dtype(ml_dtypes.bfloat16)
    assert Tensor(data=np.ones(2, np.float16)).dtype == FLOAT16
    assert Tensor(data=np.ones(2, bf16)).dtype == BFLOAT16
    assert Tensor(BFLOAT16, data=[1.00390625, 3.0e38]).get_data().tolist() == [1.0, float(bf16.type(3.0e38))]
    assert Tensor(FLOAT16, 2, data=np.array([1.5, -2], "f2").tobytes()).get_data().tolist() == [1.5, -2]
    assert np.isposinf(Tensor(FLOAT16, data=[np.inf]).get_data()).all()
    assert (Scalar(0.1, FLOAT16).value, Scalar(0.1, BFLOAT16).value) == (float(np.float16(0.1)), 0.10009765625)
    assert Scalar(bf16.type(2.5), BFLOAT16).value == 2.5
    assert repr(Tensor("x", data=np.array([0.5, -3], bf16))) == "Tensor('x', BFLOAT16, [2], [0.5, -3])"
    for make in (lambda: Tensor(FLOAT16, data=[70000]), lambda: Tensor(BFLOAT16, data=[3.4e38])):
        with pytest.raises(UsageError, match="FLOAT16 numbers, its data does not"):
            make()
    with pytest.raises(UsageError, match="70000 is no FLOAT16 number"):
        Scalar(70000, FLOAT16)
    with pytest.raises(UsageError, match="the tensor holds INT8 numbers, its data does not"):
        Tensor(INT8, data=np.array([0.5], bf16))


# -- programs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.name)
@pytest.mark.parametrize("name", TAKES_FLOATS)
def test_an_operator_is_chip_commands_with_the_bits_of_eager_results(name: str, half: DataType, tmp_path: Path) -> None:
    """In all element types; what the host computes is what it does for FLOAT32. Results are near those of FLOAT32."""
    every = cases(name, half)
    assert every
    for first in range(0, len(every), TOGETHER):
        chosen = every[first : first + TOGETHER]
        made = compiled(name, chosen, tmp_path)
        assert bool(made.host) == (name in ON_THE_HOST), made.host


def compiled(name: str, chosen: list[Case], folder: Path, compare: bool = True) -> Compilation:
    """A program of these calls, whose results have the bits of eager ones, and are near those of frameworks."""
    given = given_to(name, chosen)
    with bmlang.init(BOTH, CHIP, folder, arithmetic=Arithmetic.CHIP) as program:
        made = called(name, given, chosen)
        found = program.compile_with_check("one", program.inputs, [one for each in made for one in each], 2)
    assert not any(found.errors.values()), (chosen, found.errors)
    with bmlang.init(COMPUTE_CPU, CHIP):
        for chips, one, case in zip(made, given, chosen) if compare and name != "sequence_gen" else ():
            for chip, exact in zip(chips, call(name, one, case[2])):
                near(chip, exact.get_data(), case)
    return found


def special(rng: np.random.Generator, shape: tuple[int, ...], dtype: DataType) -> Any:
    """Random numbers, a quarter of the floats infinite, missing, zeros, the largest, or denormal."""
    array = values(rng, shape, dtype)
    if not dtype.is_integer:
        most, least = largest(array.dtype), 6e-8 if dtype == FLOAT16 else 1e-39
        some = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, most, -most, least, -least]).astype(array.dtype)
        flat = array.reshape(-1)
        flat[rng.integers(0, flat.size, max(flat.size // 4, 1))] = rng.choice(some, max(flat.size // 4, 1))
    return array


@pytest.mark.sweep
@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.name)
@pytest.mark.parametrize("name", [name for name in TAKES_FLOATS if name not in WITH_WEIGHTS])
def test_special_numbers_have_the_same_bits_on_the_chip(
    name: str, half: DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with constants are left out: weights that are not finite are refused."""
    monkeypatch.setattr(bmlang_samples, "values", special)
    every = cases(name, half)
    for first in range(0, len(every), TOGETHER):
        with np.errstate(all="ignore"):
            compiled(name, every[first : first + TOGETHER], tmp_path, compare=False)


def near(got: Tensor, want: Any, case: Case) -> None:
    """Three roundings of the largest number apart at most; integers a rounding of what was rounded to them."""
    assert got.dtype is not None
    if got.dtype.is_integer:
        np.testing.assert_array_equal(got.get_data(), want, str(case))
        return
    exact, found = (np.asarray(array, np.float64) for array in (want, got.get_data()))
    coarsest = min(BITS.get(dtype, 24) for dtype in (*case[1], *case[2]))
    finite = np.isfinite(exact)
    limit = 3 * 2.0**-coarsest * np.abs(exact[finite]).max(initial=1)
    np.testing.assert_array_equal(found[~finite], exact[~finite], str(case))
    np.testing.assert_allclose(found[finite], exact[finite], rtol=0, atol=limit, err_msg=str(case))


def network(x: Tensor, dtype: DataType, rng: np.random.Generator, arrays: dict[str, Any]) -> Tensor:
    """conv, bias, relu, pooling, a slice, a product, softmax by its parts, a mean of both halves."""

    def constant(name: str, *shape: int) -> Tensor:
        arrays[name] = rng.normal(0, shape[-1] ** -0.5, shape).astype(numpy_type(dtype))
        made = Tensor(name, dtype, data=arrays[name])
        return bmlang.constdata(made)

    layer = bmlang.conv([x, constant("w", 16, 8, 3, 3), constant("b", 1, 16, 1, 1)], ConvParam(1, 1, 1, 1, 1, 1))
    layer = bmlang.active(layer, ActiveType.ACTIVE_RELU)
    layer = bmlang.pool(layer, PoolParam(2, 2, 0, 0, 0, 0, 2, 2, PoolType.MAX))
    part = bmlang.extract(layer, [0, 0, 1, 0], [2, 16, 5, 5], [1, 1, 1, 2])
    rows = bmlang.reshape(part, [2, -1])
    scores = bmlang.matrix_mul([rows, constant("m", 192, 10), constant("c", 1, 10)])
    largest = bmlang.reduce(scores, ReduceParam(ReduceMethodType.REDUCE_MAX, [1]))
    powers = bmlang.active(scores - largest, ActiveType.ACTIVE_EXP)
    chances = powers / bmlang.reduce(powers, ReduceParam(ReduceMethodType.REDUCE_SUM, [1]))
    return bmlang.concat([chances, scores * 0.25], 1, name="y")


def in_double(x: Any, arrays: dict[str, Any]) -> Any:
    """The same by numpy."""
    x, (w, b, m, c) = x.astype(np.float64), (arrays[name].astype(np.float64) for name in "wbmc")
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    layer = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w) + b, 0)
    layer = layer.reshape(2, 16, 6, 2, 6, 2).max((3, 5))
    scores = layer[:, :, 1:5, 0:5:2].reshape(2, -1) @ m + c
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return np.concatenate([powers / powers.sum(1, keepdims=True), scores * 0.25], 1)


@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.name)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_network_is_near_its_numbers_and_on_the_chip(half: DataType, level: int, tmp_path: Path) -> None:
    rng, arrays = np.random.default_rng(5), dict[str, Any]()
    data = rng.normal(0, 1, (2, 8, 12, 12)).astype(numpy_type(half))
    with bmlang.init(BOTH, CHIP, tmp_path) as program:
        x = Tensor("x", data=data)
        y = network(x, half, rng, arrays)
        made = program.compile_with_check("net", [x], [y], level)
    assert made.host == []
    kinds = {op.short_name: op.results[0].dtype for op in made.result.module.main.ops if isinstance(op, TensorOp)}
    assert kinds["conv"] == kinds["matmul"] == half.ir, kinds
    want = in_double(data, arrays)
    for name, found in (("eager", y.get_data()), ("chip", Session(made.path).run({"x": data})["y"])):
        assert np.abs(found.astype(np.float64) - want).max() < 6 * 2.0 ** -BITS[half] * np.abs(want).max(), name
    raw = Session(made.path).run({"x": data}, raw=True)["y"]
    assert raw.dtype == (np.float16 if half == FLOAT16 else np.uint16)  # of bf16 the bits
    assert made.errors["y"] < 6 * 2.0 ** -BITS[half]


def test_the_reference_file_has_two_bytes_a_number(tmp_path: Path) -> None:
    with bmlang.init(BOTH, CHIP, tmp_path) as program:
        x = Tensor("x", BFLOAT16, data=[1.0, -2.5, 0.125])
        program.compile_with_check("one", [x], [x * 2.0])
    for name, numbers in (("input_ref_data.dat", [1.0, -2.5, 0.125]), ("output_ref_data.dat", [2.0, -5.0, 0.25])):
        assert (tmp_path / name).read_bytes() == np.array(numbers, ml_dtypes.bfloat16).tobytes()


def test_integers_that_rounding_tells_apart_need_the_arithmetic_of_the_chip(tmp_path: Path) -> None:
    """Means of windows, whose factor the chip rounds: some are greater than a number here and not there."""
    data = np.random.default_rng(0).uniform(90, 110, (1, 8, 20, 20)).astype(np.float16)
    window = PoolParam(1, 1, 0, 0, 0, 0, 3, 3, PoolType.AVE)
    for arithmetic in Arithmetic:
        with bmlang.init(BOTH, CHIP, tmp_path, arithmetic=arithmetic) as program:
            x = Tensor("x", data=data)
            y = bmlang.cast(bmlang.pool(x, window) * 16.0, dtype=INT32)
            if arithmetic == Arithmetic.CHIP:
                program.compile_with_check("one", [x], [y])
            else:
                with pytest.raises(RuntimeUseError, match=r"differs from its reference .* Remedy: with arithmetic="):
                    program.compile_with_check("one", [x], [y])


@pytest.mark.parametrize("method", list(ReduceMethodType)[:2], ids=lambda method: method.name)
def test_sums_are_made_in_more_than_16_bits(method: ReduceMethodType, tmp_path: Path) -> None:
    """A mean of 4,096 hundreds is one, and so many ones are 4,096: in f16 the sums would be infinite, or 2,048."""
    number = 100.0 if method == ReduceMethodType.REDUCE_MEAN else 1.0
    with bmlang.init(BOTH, CHIP, tmp_path) as program:
        x = Tensor("x", FLOAT16, data=np.full((2, 3, 64, 64), number))
        program.compile_with_check("one", [x], [found := bmlang.reduce(x, ReduceParam(method, [2, 3]))])
    assert (found.get_data() == (100 if number == 100 else 4096)).all()


# -- random programs ---------------------------------------------------------------------------------------------------
CHOICES = (
    (FLOAT16,),
    (BFLOAT16,),
    (FLOAT16, FLOAT32),
    (*HALVES, FLOAT32),
    (FLOAT16, INT8, FLOAT32, INT32),
    (BFLOAT16, UINT8),
)


SEEDS = [pytest.param(seed, marks=pytest.mark.sweep if seed >= 18 else ()) for seed in range(240)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int, tmp_path: Path) -> None:
    """The simulator gives the bits of the IR; of floats only some are as far from single calls as others compare."""
    with np.errstate(all="ignore"), bmlang.init(BOTH, CHIP, tmp_path, arithmetic=Arithmetic.CHIP) as program:
        writer = Writer(seed, CHOICES[seed % len(CHOICES)])
        made = [tensor for tensor in dict.fromkeys(writer.program(8)) if tensor not in program.inputs]
        outputs = [tensor for tensor in made if program.recorded(tensor) is not None]
        try:
            program.compile_with_check("random", program.inputs, outputs, seed % 3)
        except RuntimeUseError as error:
            assert "reference" in str(error), writer.log
