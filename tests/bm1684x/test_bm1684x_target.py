"""The BM1684X as a target: small nets give the bits of evaluation at every level, on the device alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op


class Weights:
    """Reproducible random constants of a builder."""

    def __init__(self, b: Builder) -> None:
        self.b, self.rng = b, np.random.default_rng(0)

    def __call__(self, *shape: int) -> Value:
        values: NDArray[np.float32] = self.rng.standard_normal(shape).astype(np.float32)
        return self.b.weight(values / np.float32(np.sqrt(values[0].size)), "w")


def lenet(b: Builder, x: Value) -> Value:
    w = Weights(b)
    y = b.max_pool(b.conv(x, w(20, 1, 5, 5), w(20)), kernel=(2, 2), strides=(2, 2))
    y = b.max_pool(b.conv(y, w(50, 20, 5, 5), w(50), activation="relu"), kernel=(2, 2), strides=(2, 2))
    return b.softmax(b.matmul(b.reshape(y, shape=(2, 800)), w(800, 10), w(10)), axis=1)


def test_a_classifier_gives_the_bits_of_evaluation_at_every_level() -> None:
    checked = check_op(lenet, [(2, 1, 28, 28)], target="bm1684x", close=1e-5)
    assert {row.where for row in checked.result.rows} <= {"bm1684x", "view"}


def bytes_beside_floats(b: Builder, x: Value) -> Value:
    """Bytes, halfwords and words beside floats, over more channels than lanes."""
    small = b.cast(b.mul(x, b.weight(np.full((1,), 40, np.float32), "k")), dtype="i8")
    return b.add(b.cast(small, dtype="f32"), b.cast(b.cast(small, dtype="i16"), dtype="f32"))


def test_bytes_and_halfwords_are_widened() -> None:
    check_op(bytes_beside_floats, [(3, 130, 5, 7)], target="bm1684x", seeds=1)


def test_only_known_precisions() -> None:
    with pytest.raises(Exception, match="int4"):
        TARGET.pipeline("int4", 2)
