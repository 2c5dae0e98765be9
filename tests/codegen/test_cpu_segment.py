"""Subnets of the host in device memory: what they read and write lies inside of it, to the last byte."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.errors import FileFormatError
from bmcompiler.ir import TensorType
from bmcompiler.ir.printer import print_module
from bmcompiler.ops.builder import Builder

SIZE, ROOM = 4, 12


def bound(source: int, target: int, neuron: np.ndarray) -> None:
    """Run relu of four bytes at `source`, whose results go to `target`."""
    b = Builder.new("net")
    module = b.outputs([b.relu(b.input("x", TensorType((SIZE,), "i8")))], ["y"])
    module.main.attributes |= {"input_offsets": (source,), "output_offsets": (target,)}
    bind_segment(print_module(module).encode(), neuron, np.zeros(0, np.uint8))()


def test_tensors_may_lie_at_both_ends_of_memory() -> None:
    neuron = np.array([1, -2, 3, -4, *[9] * 8], np.int8).view(np.uint8)
    bound(0, ROOM - SIZE, neuron)
    assert neuron.view(np.int8).tolist() == [1, -2, 3, -4, 9, 9, 9, 9, 1, 0, 3, 0]


@pytest.mark.parametrize("outside", [-1, -SIZE, ROOM - SIZE + 1])
@pytest.mark.parametrize("reads", [True, False])
def test_tensors_outside_of_memory_are_refused(reads: bool, outside: int) -> None:
    with pytest.raises(FileFormatError, match=f"activation bytes {outside} "):
        bound(*((outside, 0) if reads else (0, outside)), np.zeros(ROOM, np.uint8))
