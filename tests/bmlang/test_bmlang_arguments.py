"""Arguments that nobody should give: refused with one sentence that names the operator, or computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bmlang_samples import ROWS, arguments, combinations, variants

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    COEFF_TENSOR,
    COMPUTE_CPU,
    FLOAT32,
    INT8,
    ConvParam,
    MatrixMulParam,
    PoolParam,
    QCalMode,
    ReduceParam,
    Scalar,
    Tensor,
    UserCpuParam,
)
from bmcompiler.errors import BMError, UsageError
from bmcompiler.frontends.bmlang.typings import accepted

NUMBERS = (None, True, "x", -1, 0, 1 << 31, -(1 << 100), 0.5, float("nan"), float("inf"), 1e300, 1j, np.array([[0.0]]))
LISTS = ((), [None], [-1] * 4, [1 << 40] * 4, [1] * 40, [0.5] * 4, [[1]] * 4, {"a": 1}, iter([1]), object(), print)
WRONG: tuple[Any, ...] = (*NUMBERS, *LISTS, Scalar(float("nan")), Scalar(-1, INT8), ConvParam(), [Tensor()], Tensor())


def odd_tensors() -> Iterator[Tensor]:
    """Tensors without a type or data, empty ones, of many axes, with numbers that are none."""
    yield Tensor("n", FLOAT32, [2, 3, 4, 6])
    yield Tensor(name="c", ttype=COEFF_TENSOR, dtype=INT8, shape=(2, 3))
    yield Tensor(data=np.zeros((2, 3)))
    for shape in ((), (0,), (2, 0, 3, 4), (1,) * 8):
        yield Tensor(data=np.zeros(shape, np.float32))
        yield Tensor(data=np.zeros(shape, np.int32))
    for number in (np.nan, np.inf, 3e38):
        yield Tensor(data=np.full((2, 3, 4, 6), number, np.float32))
    for whole in (-(1 << 31), -1, 1000, (1 << 31) - 1):
        yield Tensor(data=np.full(4, whole, np.int32))


def valid(name: str) -> dict[str, Any]:
    row, rng = ROWS[name], np.random.default_rng(3)
    if name == "constdata":
        return {}
    typing, variant = row.typing("BM1684"), variants(row)[0]
    ins, outs = next((i, o) for i, o in combinations(row) if accepted(typing, variant, i, o, False))
    return arguments(row, ins, outs, variant, rng)


def spoiled(name: str) -> Iterator[dict[str, Any]]:
    """The valid call with one wrong argument, or one wrong entry of a list or field of a struct."""
    good = valid(name)
    for parameter in ROWS[name].parameters:
        old = good.get(parameter.name)
        for wrong in (*WRONG, *odd_tensors()):
            yield {**good, parameter.name: wrong}
            if isinstance(old, (list, tuple)) and old:
                yield {**good, parameter.name: [*old[:-1], wrong]}
            if isinstance(old, np.ndarray) or not dataclasses.is_dataclass(old):
                continue
            for field in dataclasses.fields(old):
                try:
                    yield {**good, parameter.name: dataclasses.replace(old, **{field.name: wrong})}  # type: ignore[type-var]
                except UsageError as error:
                    check_sentence(str(error), f"{type(old).__name__} needs {field.name} to be ")
    for more in ({"dtype": "int7"}, {"dtype": 1 << 40}, {"name": 3}, {"name": ""}, {"other": 1}):
        yield {**good, **more}


def check_sentence(text: str, start: str) -> None:
    assert text.startswith(start)
    assert "\n" not in text
    assert len(text) < 600


@pytest.mark.parametrize("name", ROWS)
def test_wrong_arguments_are_refused_in_a_sentence(name: str) -> None:
    refused = 0
    for given in spoiled(name):
        with bmlang.init(COMPUTE_CPU, "BM1684"), np.errstate(all="ignore"):
            try:
                getattr(bmlang, name)(**given)
            except BMError as error:
                refused += 1
                check_sentence(str(error), f"{name} ")
    assert refused > len(WRONG)


def test_a_refusal_says_what_was_meant() -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        x = Tensor(data=[1.0, 2.0])
        for call, remedy in (
            (lambda: bmlang.add(x, np.zeros(2)), "make a tensor of the array: Tensor(data=array)"),
            (lambda: bmlang.add(x, 1.0), "adds takes a number"),
            (lambda: bmlang.adds(x, x), "add takes two tensors"),
            (lambda: x + np.zeros(2), "make a tensor of the array: Tensor(data=array)"),
            (lambda: bmlang.matrix_mul([x] * 4), "matrix_mul on BM1684: takes 2 or 3 tensors, got 4"),
            (lambda: bmlang.active(x, "relu"), "active needs active_type to be an ActiveType, got 'relu'"),
            (lambda: bmlang.concat(x, 0), "put the tensor in a list"),
            (lambda: bmlang.add(Tensor(data=np.zeros(2)), x), "convert the data, array.astype(np.float32)"),
            (lambda: bmlang.adds(Tensor(), 1), "or let an operator write it before it is read"),
        ):
            with pytest.raises(UsageError) as error:
                call()
            assert str(error.value).endswith(remedy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvParam(stride_h="2"), "ConvParam needs stride_h to be a whole number of 32 bits, got '2'"),
        (lambda: ConvParam(mode=7), "ConvParam needs mode to be a QCalMode, got 7"),
        (lambda: MatrixMulParam(mode=bmlang.PoolType.AVE), "MatrixMulParam needs mode to be a QCalMode"),
        (lambda: PoolParam(kernel_h=1 << 32), "PoolParam needs kernel_h to be a whole number of 32 bits"),
        (lambda: ReduceParam(axis_list=3), "ReduceParam needs axis_list to be a list of whole numbers"),
        (lambda: UserCpuParam("f", ((2, -1),)), "UserCpuParam needs output_shapes to be a list of shapes"),
        (lambda: Tensor(data=[[1], [2, 3]]), "the tensor takes an array of numbers as its data"),
        (lambda: Tensor(data="abc"), "the tensor takes an array of numbers as its data"),
        (lambda: Tensor(data=[1e300]), "the tensor needs an element type: its data does not fit float32"),
        (lambda: Tensor(FLOAT32, data=[1e300]), "the tensor holds FLOAT32 numbers, its data does not"),
        (lambda: Tensor(FLOAT32, 2, 3, data=np.zeros((3, 2))), r"the tensor has shape \[2, 3\], its data \[3, 2\]"),
        (lambda: Tensor(FLOAT32, -1), "the sizes of a tensor are 0 or more"),
        (lambda: Tensor(FLOAT32, ["a"]), "the sizes of a tensor are whole numbers"),
        (lambda: Tensor(FLOAT32, 1 << 20, 1 << 20), "a tensor has at most 2147483647 elements"),
        (lambda: Tensor(ttype=5), "the tensor type is NEURON_TENSOR or COEFF_TENSOR, got 5"),
        (lambda: Scalar(float("nan"), INT8), "nan is no INT8 number"),
        (lambda: Scalar(1e300), "1e[+]300 is no FLOAT32 number"),
        (lambda: Scalar("1"), "'1' is no FLOAT32 number"),
    ],
)
def test_what_makes_no_tensor_scalar_or_struct(make: Any, message: str) -> None:
    with pytest.raises(BMError, match=message):
        make()


def test_structs_take_lists_and_numbers_of_enumerations() -> None:
    assert ConvParam(mode=1).mode is QCalMode.HighPrecisionSymmetric
    assert ReduceParam(axis_list=[1, np.int64(2)]).axis_list == (1, 2)
    assert PoolParam(is_ceil_mode=1).is_ceil_mode is True
    assert MatrixMulParam(scale=1).scale == 1.0


def test_one_number_without_axes_compiles(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=np.float32(2.5))
        y = bmlang.muls(x, 2.0)
        assert (y.shape, y.get_data()) == ((), 5)
        assert not program.compile_with_check("one", [x], [y]).host


def test_nothing_cannot_be_compiled(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=np.zeros((2, 0), np.float32))
        y = bmlang.muls(x, 2.0)
        with pytest.raises(UsageError, match=r"'x' has shape \[2, 0\]: a compiled program cannot take or give nothing"):
            program.compile_with_check("none", [x], [y])


def test_what_was_declared_or_used_before_is_not_changed_in_silence() -> None:
    small, large = np.zeros((2, 3), np.int8), np.zeros((2, 3, 4), np.float32)
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        tensor = Tensor(data=large)
        with pytest.raises(
            UsageError, match=r"Tensor\('o', FLOAT32, \[9\]\) was declared with shape \[9\], the result has"
        ):
            bmlang.add(tensor, tensor, Tensor("o", FLOAT32, [9]))
        declared = Tensor("o", FLOAT32, [2, 3, 4])
        bmlang.add(tensor, tensor, declared)
        bmlang.copy(Tensor(data=small.astype(np.float32)), declared)  # what an operator wrote may be written again
        assert declared.shape == (2, 3)
        with pytest.raises(UsageError, match=r"constdata on BM1684: .* no operator may have read or written it"):
            bmlang.constdata(tensor)
        with pytest.raises(UsageError, match=r"scalar 70000 is no INT8\|UINT8\|INT16\|UINT16 number"):
            bmlang.adds(Tensor(data=small), 70000)
        turned = bmlang.permute(Tensor(data=large), [-1, 0, -2])
        assert turned.shape == (4, 2, 3)
        with pytest.raises(BMError, match="permute on BM1684: axis 3 does not exist in a tensor of 3 axes"):
            bmlang.permute(Tensor(data=large), [3, 0, 1])
