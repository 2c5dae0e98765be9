"""Tensors and scalars: what makes them, data both ways, what they show, Python's operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler import bmlang
from bmcompiler.bmlang import COEFF_TENSOR, COMPUTE_CPU, FLOAT32, INT8, INT16, NEURON_TENSOR, Scalar, Tensor
from bmcompiler.errors import BMError, UsageError


def noise(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def test_all_forms_of_the_constructor() -> None:
    forms = [
        Tensor("x", FLOAT32, 2, 3, 0, 0, 0, 0, 0, 0),
        Tensor("x", FLOAT32, [2, 3]),
        Tensor("x", FLOAT32, NEURON_TENSOR, [2, 3]),
        Tensor(FLOAT32, 2, 3, name="x"),
        Tensor(name="x", dtype=np.float32, shape=(2, 3)),
    ]
    assert {(t.name, t.dtype, t.shape, t.ttype) for t in forms} == {("x", FLOAT32, (2, 3), NEURON_TENSOR)}
    assert (Tensor().name, Tensor().dtype, Tensor().shape) == (None, None, None)
    assert Tensor("w", INT8, COEFF_TENSOR, [4]).constant


def test_a_property_is_said_once() -> None:
    tensor = Tensor("x", FLOAT32, NEURON_TENSOR, [2], data=[1, 2])
    for again in (
        lambda: tensor.set_name("y"),
        lambda: tensor.set_dtype(INT8),
        lambda: tensor.set_tensor_type(COEFF_TENSOR),
        lambda: tensor.set_data([3, 4]),
    ):
        with pytest.raises(UsageError, match=r"tensor 'x' has its .* already, which can be set once"):
            again()


def test_data_is_copied_both_ways() -> None:
    given = noise(2, 3)
    tensor = Tensor("x", FLOAT32, 2, 3)
    tensor.set_data(given)
    before, given[0, 0] = given[0, 0], 99
    tensor.get_data()[0, 1] = 99
    assert tensor.get_data()[0, 0] == before
    assert tensor.get_data()[0, 1] == given[0, 1]
    raw = Tensor("y", INT16, 2, 2)
    raw.set_data(np.arange(4, dtype=np.int16).tobytes())
    assert raw.get_data().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tensor("x", "nothing"), "'nothing' is no element type of BMLang"),
        (lambda: Tensor(INT8, data=[300]), "the tensor holds INT8 numbers, its data does not"),
        (lambda: Tensor(INT8, data=[0.5]), "the tensor holds INT8 numbers, its data does not"),
        (lambda: Tensor("x", FLOAT32, [2], data=[1, 2, 3]), r"tensor 'x' has shape \[2\], its data \[3\]"),
        (lambda: Tensor(FLOAT32, 1, 1, 1, 1, 1, 1, 1, 1, 1), "at most 8 axes"),
        (lambda: Tensor("x", FLOAT32, 2).get_data(), "tensor 'x' has no data"),
        (lambda: Scalar(300, INT8), "300 is no INT8 number"),
        (lambda: Scalar(0.5, INT8), "0.5 is no INT8 number"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(BMError, match=message):
        make()


def test_scalars_do_not_change() -> None:
    scalar = Scalar(3, INT8)
    assert (scalar.value, scalar.dtype, repr(scalar)) == (3, INT8, "Scalar(3, INT8)")
    assert Scalar(0.1).dtype == FLOAT32
    with pytest.raises(AttributeError):
        scalar.value = 4


def test_a_repr_shows_what_is_known() -> None:
    assert repr(Tensor()) == "Tensor(type to come, shape to come)"
    assert repr(Tensor("x", FLOAT32, 2, 3)) == "Tensor('x', FLOAT32, [2, 3])"
    assert repr(Tensor("w", INT8, COEFF_TENSOR, [2], data=[1, 2])) == "Tensor('w', INT8, [2], constant, [1, 2])"
    assert repr(Tensor(data=np.arange(20, dtype=np.int32))) == "Tensor(INT32, [20], [0, 1, 2, 3, 4, 5, 6, 7, ...])"


def test_python_operators_are_those_of_the_language() -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        x, y = Tensor(data=[4.0, -2.0]), Tensor(data=[2.0, 8.0])
        n, m = Tensor(data=np.array([12, -3], np.int16)), Tensor(data=np.array([2, 1], np.int16))
        pairs = [
            (x + y, [6, 6]),
            (x - 1, [3, -3]),
            (1 - x, [-3, 3]),
            (2 * x, [8, -4]),
            (-x, [-4, 2]),
            (x / y, [2, -0.25]),
            (x > y, [1, 0]),
            (x <= -2.0, [0, 1]),
            (n & 6, [4, 4]),
            (n | m, [14, -3]),
            (n ^ m, [14, -4]),
            (n << m, [48, -6]),
            (n >> 1, [6, -2]),
            (Tensor(data=[[1.0, 2.0]]) @ Tensor(data=[[3.0], [4.0]]), [[11]]),
        ]
    for got, want in pairs:
        assert got.get_data().tolist() == want
    assert x != y
    assert len({x, y}) == 2


def test_numbers_take_the_type_that_is_allowed() -> None:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        assert (Tensor(data=np.array([5], np.uint8)) * -2).get_data() == 0  # saturates in the type of the tensor
        with pytest.raises(
            UsageError, match=r"muls on BM1684: scalar 0.5 is no INT8\|UINT8 number, as it must be beside UINT8"
        ):
            Tensor(data=np.array([5], np.uint8)) * 0.5


def test_numpy_reads_tensors_and_python_does_not_ask_whether_they_are_true() -> None:
    tensor = Tensor("x", data=[1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(tensor), np.array([1, 2], np.float32))
    with pytest.raises(UsageError, match="tensor 'x' is neither true nor false"):
        bool(tensor)
