"""Boxes of results: what is made of one is that part of the result, or nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.codegen.tiling import Box
from bmcompiler.ir import Quant, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target


@pytest.mark.parametrize(
    ("chip", "dtype"), [("bm1684", "f32"), ("bm1684", "i8"), ("bm1684x", "f32"), ("bm1684x", "i8"), ("bm1880", "i8")]
)
def test_rows_of_products_are_no_images_where_there_are_as_many(chip: str, dtype: str) -> None:
    b, quant = Builder.new("net"), None if dtype == "f32" else Quant(1 / 64)
    left, right = (b.input(name, TensorType(shape, dtype, quant)) for name, shape in SHAPES.items())
    product = b.matmul(left, right, **({} if dtype == "f32" else {"rshift": 5}))
    assert product.op is not None and product.shape == (8, 1, 8, 1)
    kernel: Any = find_target(chip).kernel_for(product.op)
    kernel = kernel.form(product.op) if isinstance(kernel, FormsKernel) else kernel
    box = ((0, 1), (0, 1), (3, 4), (0, 1))
    work = kernel.boxed(product.op, box)
    if work is not None:
        made = work.outputs[0].contents
        assert np.array_equal(_numbers(made.layout, made.box), _numbers(product.shape, box))


def _numbers(shape: tuple[int, ...], box: Box) -> np.ndarray:
    """Those of the elements of a box of a dense tensor."""
    return np.arange(np.prod(shape)).reshape(shape)[tuple(slice(*interval) for interval in box)].ravel()


SHAPES = {"left": (8, 1, 8, 16), "right": (8, 1, 16, 1)}
