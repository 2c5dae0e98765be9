"""Operators beside the vendor's 108, parts by `x[...]`, and what `made.host` prints; odd shapes, on the chips."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bmlang_samples import values
from oracle import expected

from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BFLOAT16,
    BOTH,
    COMPUTE_CPU,
    FLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    Arithmetic,
    DataType,
    LayerNormParam,
    MatrixMulParam,
    QCalMode,
    ResizeMode,
    ResizeParam,
    Tensor,
)
from bmcompiler.errors import BMError, UsageError
from bmcompiler.frontends.bmlang.typings import EVERY

CHIPS = {"BM1684": (FLOAT32,), "BM1684X": (FLOAT32, FLOAT16, BFLOAT16)}
ON = [pytest.param(chip, dtype, id=f"{chip} {dtype.name}") for chip, types in CHIPS.items() for dtype in types]
LIMITS = {FLOAT32: 1e-5, FLOAT16: 2e-3, BFLOAT16: 2e-2}
"""How far a result may be from that of double numbers, in units of the largest: some roundings to the type."""
PLAIN = MatrixMulParam()

SOFTMAX: list[tuple[tuple[int, ...], int]] = [
    ((3, 5, 7), -1), ((2, 3, 5, 1), 1), ((13,), 0), ((2, 67, 3, 5, 2), -4), ((1, 1000), 1), ((1, 1), 0)
]  # fmt: skip
NORMS: list[tuple[tuple[int, ...], int, int]] = [
    ((3, 5, 7), 2, 0), ((3, 129), -1, 1), ((2, 3, 5, 9), 2, 2), ((1, 5, 3, 2, 7), 1, 2), ((7,), 0, 2), ((2, 1), 1, 2)
]  # fmt: skip
"""Shape, first axis of the statistics, how many of gamma and beta there are."""
MATRICES: list[tuple[tuple[int, ...], tuple[int, ...], bool, bool]] = [
    ((3, 5, 7), (3, 7, 2), False, False), ((2, 3, 5, 7), (7, 9), False, False), ((2, 1, 5, 7), (3, 11, 7), False, True),
    ((4, 3, 65), (4, 65, 1), False, False), ((2, 9, 5), (2, 9, 4), True, False), ((1, 3), (2, 2, 3, 3), False, True),
    ((5, 2), (1, 3, 5), True, True),
]  # fmt: skip
SIZES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3, 5, 7), (10, 14)), ((2, 3, 5, 7), (9, 4)), ((1, 3, 13, 17), (7, 17)), ((3, 5), (8,)), ((2, 4, 6), (1,)),
    ((1, 2, 6, 6), (11, 1)), ((2, 3, 4), (3, 5, 2)), ((1, 1), (3, 3)),
]  # fmt: skip
RESIZES = [ResizeParam(mode) for mode in ResizeMode] + [ResizeParam(mode, True) for mode in (1, 2)]


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: DataType) -> Tensor:
    return Tensor(data=values(rng, shape, dtype))


def softmaxes(rng: np.random.Generator, dtype: DataType) -> list[tuple[str, dict[str, Any]]]:
    return [("softmax", {"tensor_i": drawn(rng, shape, dtype), "axis": axis}) for shape, axis in SOFTMAX]


def norms(rng: np.random.Generator, dtype: DataType) -> list[tuple[str, dict[str, Any]]]:
    """Factors are constants in every second call."""
    found: list[tuple[str, dict[str, Any]]] = []
    for index, (shape, axis, factors) in enumerate(NORMS):
        tensors = [drawn(rng, each, dtype) for each in (shape, *[shape[axis:]] * factors)]
        for each in tensors[1:]:
            each.constant = bool(index % 2)
        found.append(("layer_norm", {"tensor_i": tensors, "param": LayerNormParam(axis, 1e-3)}))
    return found


def products(rng: np.random.Generator, dtype: DataType) -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            "batch_matmul",
            {
                "matrix_input": [drawn(rng, left, dtype), drawn(rng, right, dtype)],
                "param": PLAIN,
                "transpose_left": turned,
                "transpose_right": swapped,
            },
        )
        for left, right, turned, swapped in MATRICES
    ]


def resizes(rng: np.random.Generator, dtype: DataType) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("resize", {"tensor_i": drawn(rng, shape, dtype), "size": size, "param": param})
        for shape, size in SIZES
        for param in RESIZES
    ]


def arrays(given: dict[str, Any]) -> dict[str, Any]:
    """The same with arrays for tensors; floats in double."""

    def array(tensor: Tensor) -> Any:
        data = tensor.get_data()
        return data if data.dtype.kind in "iu" else data.astype(np.float32)

    return {
        key: array(value)
        if isinstance(value, Tensor)
        else [array(each) for each in value]
        if isinstance(value, list)
        else value
        for key, value in given.items()
    }


@pytest.mark.parametrize("calls", [softmaxes, norms, products, resizes])
@pytest.mark.parametrize(("chip", "dtype"), ON)
def test_shapes_of_all_kinds_are_commands_near_plain_loops(
    chip: str, dtype: DataType, calls: Callable[..., Any], tmp_path: Path
) -> None:
    given = calls(np.random.default_rng(7), dtype)
    with bmlang.init(BOTH, chip, tmp_path, arithmetic=Arithmetic.CHIP) as program:
        made = [bmlang.OPERATORS[name](**one) for name, one in given]
        compiled = program.compile_with_check("one", program.inputs, made)
    assert not compiled.host and not any(compiled.errors.values())
    for (name, one), tensor in zip(given, made):
        (want,) = expected(name, arrays(one), [FLOAT32])
        assert tensor.dtype == dtype
        error = np.abs(tensor.get_data().astype(np.float64) - want).max()
        assert error <= LIMITS[dtype] * max(1, np.abs(want).max()), (name, one, error)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16, UINT16, INT32], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("chip", CHIPS)
def test_pictures_of_integers_are_resized_and_rounded(chip: str, dtype: DataType, tmp_path: Path) -> None:
    """By factors of two, where every weight is a float32 number: halves go away from zero."""
    rng = np.random.default_rng(3)
    x = Tensor(data=np.clip(values(rng, (1, 3, 6, 10), dtype), -2000, 2000))
    with bmlang.init(BOTH, chip, tmp_path) as program:
        made = [bmlang.resize(x, size, param) for size in ((12, 20), (3, 5)) for param in RESIZES[:3]]
        assert not program.compile_with_check("one", [x], made).host
    for tensor, (size, param) in zip(made, [(s, p) for s in ((12, 20), (3, 5)) for p in RESIZES[:3]]):
        (want,) = expected("resize", {"tensor_i": x.get_data(), "size": size, "param": param}, [dtype])
        np.testing.assert_array_equal(tensor.get_data(), want, f"{size} {param}")


@pytest.mark.parametrize("mode", [QCalMode.LowPrecisionSymmetric, QCalMode.HighPrecisionSymmetric])
@pytest.mark.parametrize("dtype", [INT8, UINT8], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("chip", CHIPS)
def test_products_of_computed_integers_are_commands(chip: str, dtype: DataType, mode: QCalMode, tmp_path: Path) -> None:
    """Also of sums beyond what float32 holds, in parts."""
    rng = np.random.default_rng(5)
    param = MatrixMulParam(scale=0.003, mode=mode)
    shapes = [((2, 3, 5, 7), (2, 3, 7, 4)), ((2, 5, 700), (700, 9)), ((1, 1, 1, 3), (3, 3, 66))]
    given = [[drawn(rng, left, dtype), drawn(rng, right, dtype)] for left, right in shapes]
    with bmlang.init(BOTH, chip, tmp_path) as program:
        made = [bmlang.batch_matmul(pair, param) for pair in given]
        made.append(bmlang.matrix_mul([bmlang.reshape(given[1][0], [10, 700]), given[1][1]], param))
        assert not program.compile_with_check("one", program.inputs, made).host
    for pair, tensor in zip(given, made):
        args = {"matrix_input": [each.get_data() for each in pair], "param": param}
        (want,) = expected("batch_matmul", {**args, "transpose_left": False, "transpose_right": False}, [dtype])
        np.testing.assert_array_equal(tensor.get_data(), want)
    np.testing.assert_array_equal(made[3].get_data().reshape(2, 5, 9), made[1].get_data())


# -- parts of tensors --------------------------------------------------------------------------------------------------
def keys() -> list[Any]:
    """What numpy takes, too, and means the same by."""
    return [
        0, -1, (..., 1), (slice(None), slice(1, 3)), (None, -1, slice(None, None, 2)), slice(None, None, -1),
        (..., None), (slice(1, 2), slice(None), slice(-3, None)), (0, 1, 2), (slice(None), [4, 0, -1, 0]), ...,
        (None, 0, None, ..., None), (2, slice(3, 0, -2)), np.int64(1), (slice(None), np.array([1, 3])), slice(5, 99),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", EVERY, ids=lambda dtype: dtype.name)
def test_parts_are_those_of_numpy_and_on_the_chip(dtype: DataType, tmp_path: Path) -> None:
    x = drawn(np.random.default_rng(1), (3, 5, 7), dtype)
    array, chips = x.get_data(), [chip for chip in CHIPS if dtype.is_integer or dtype in CHIPS[chip]]
    for chip in chips:
        with bmlang.init(BOTH, chip, tmp_path) as program:
            made = [x[key] for key in keys()]
            rows = list(x)
            filled = [part for part in made if part.get_data().size]
            assert not program.compile_with_check("one", [x], [*filled, *rows]).host
        for key, part in zip(keys(), made):
            assert part.dtype == dtype and part.shape == array[key].shape, key
            np.testing.assert_array_equal(part.get_data(), array[key], str(key))
        assert len(x) == len(rows) == 3
        np.testing.assert_array_equal(np.stack([row.get_data() for row in rows]), array)


def test_positions_may_be_computed(tmp_path: Path) -> None:
    x, index = Tensor("x", data=np.arange(15, dtype=np.float32).reshape(3, 5)), Tensor("i", data=[4, 0, 4])
    with bmlang.init(BOTH, "BM1684X", tmp_path) as program:
        part = x[1:, index]
        assert not program.compile_with_check("one", program.inputs, [part]).host
    np.testing.assert_array_equal(part.get_data(), x.get_data()[1:][:, [4, 0, 4]])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "3 is no position of axis 0 with 3 elements"),
        ((0, 0, 0), r"a key for 3 axes does not fit shape \[3, 5\]"),
        ((..., ...), "a key has ... once"),
        (slice(None, None, 0), "is no range of axis 0: start, end and step are whole numbers, step is not 0"),
        (slice(0.5), "is no range of axis 0"),
        ((slice(None), [0, 9]), "9 is no position of axis 1 with 5 elements"),
        ("a", "'a' is no key of axis 0. Remedy: a key is a whole number, a slice, a list"),
        (True, "True is no key of axis 0"),
        ([True, False, True], "is no key of axis 0"),
        (Tensor(data=np.ones((3, 5), np.uint8)), "masked_select takes masks"),
    ],
)
def test_keys_that_name_no_part_are_refused(key: Any, message: str) -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        with pytest.raises(UsageError, match=message) as error:
            Tensor(data=np.ones((3, 5), np.float32))[key]
        assert "\n" not in str(error.value)


def test_what_has_no_first_axis_has_no_length() -> None:
    for tensor in (Tensor(), Tensor(data=np.float32(1))):
        with pytest.raises(UsageError, match="to count along"):
            len(tensor)
        with pytest.raises(UsageError):
            list(tensor)
    with bmlang.init(COMPUTE_CPU, "BM1684"), pytest.raises(UsageError, match="its shape is not known"):
        Tensor()[0]


# -- refusals and reports ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: bmlang.softmax(x, 3), "softmax on BM1684: axis 3 does not exist in a tensor of 3 axes"),
        (lambda x: bmlang.layer_norm([x, x]), r"gamma must have shape \[4\], got \[2, 3, 4\]"),
        (lambda x: bmlang.layer_norm([x], LayerNormParam(epsilon=-1)), "epsilon must be 0 or more, got -1"),
        (lambda x: bmlang.resize(x, [3] * 4), r"one number from 1 on for each of the last axes of \[2, 3, 4\]"),
        (
            lambda x: bmlang.resize(x, [3], ResizeParam(ResizeMode.NEAREST, True)),
            "align_corners is for LINEAR and CUBIC",
        ),
        (lambda x: x @ x, "batch_matmul on BM1684: inner dimensions 4 and 3 differ"),
        (lambda x: bmlang.matrix_mul([x, x]), "left and right need 2 axes"),
    ],
)
def test_what_does_not_fit_is_said(call: Callable[[Tensor], Any], message: str) -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"), pytest.raises(BMError, match=message):
        call(Tensor(data=np.ones((2, 3, 4), np.float32)))


def test_what_the_host_computes_is_one_line_each(tmp_path: Path) -> None:
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        x = Tensor("x", data=np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32))
        made = program.compile_with_check("one", [x], [bmlang.where(bmlang.softmax(x))])
    lines = str(made.host).splitlines()
    assert lines[0] == "where_2: nonzero [2, 15]: bm1684 has no kernel for 'nonzero'"
    assert [line.split(":")[0] for line in lines] == [row.layer for row in made.host]
    with bmlang.init(BOTH, "BM1684", tmp_path) as program:
        made = program.compile_with_check("one", [x], [bmlang.softmax(x)])
        assert str(made.host) == "[]"
