"""Kernels as public firmware has them: commands and memory are those of the vendor's library, results those of numpy.

`python -m tpukernel_calls FOLDER --kernels` in tools records them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from firmware_kernels import ALSO, AND, IN, KERNELS, OUT, Arrays, inputs
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tpukernel_calls.calls import KERNELS as RECORDED
from tpukernel_calls.calls import read
from tpukernel_calls.memory import GLOBAL_BYTES, Memory, place
from tpukernel_golden import meaning

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.static_tables import static_memory
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.tpukernel import FUNCTIONS, program_of, recording

CALLS = {call.name: call for call in read(RECORDED)}
F32, I32 = np.float32, np.int32


class Functions:
    """The library, without "tpu_" in front of its names."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return FUNCTIONS[f"tpu_{name}"]


def _softmax(x: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _layer_norm(g: Arrays) -> NDArray[Any]:
    x = g[IN].reshape(67, 96).astype(float)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g[AND] + g[ALSO]


def _embedding(g: Arrays) -> NDArray[Any]:
    table = np.full((30, 24), 0.5, F32)
    table[g[ALSO]] += g[IN].reshape(40, 24)[g[AND]]
    return table


def _one_hot(g: Arrays) -> NDArray[Any]:
    return np.where(np.arange(31) == g[AND][:, None], F32(0.9), F32(0.1))


WANTED: dict[str, tuple[Callable[[Arrays], NDArray[Any]], type, float]] = {
    "hypot": (lambda g: np.hypot(g[IN], g[AND]), F32, 1e-6),
    "clamp": (lambda g: g[IN].clip(-0.75, 1.5), np.float16, 0),
    "arange": (lambda g: np.stack([3 * np.arange(300) - 7, np.zeros(300)], 1), I32, 0),
    "where": (lambda g: np.where(g[AND].reshape(6, 9), g[IN].reshape(70, 6, 9), -1), F32, 0),
    "softmax": (lambda g: _softmax(g[IN].reshape(66, 90)), np.float16, 1e-3),
    "layer_norm": (_layer_norm, F32, 1e-5),
    "index_select": (lambda g: g[IN].reshape(3, 20, 17)[:, g[AND]], F32, 0),
    "flip": (lambda g: g[IN].reshape(65, 12)[::-1], F32, 0),
    "embedding_backward": (_embedding, F32, 0),
    "not_a_number": (lambda g: np.isnan(g[IN].view(F32)), np.uint8, 0),
    "one_hot": (_one_hot, F32, 0),
}
"""Kernel -> what it computes of its inputs, the type of its results, and how far they may be off, of each number."""


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_commands_and_memory_are_those_of_the_vendors_library(kernel: Callable[[Any], None]) -> None:
    memories = Memories()
    memories.static[...] = static_memory()
    outside = np.zeros(GLOBAL_BYTES, np.uint8)
    memories.globals.map(CHIP.global_base, outside)
    given = inputs(kernel)
    place(Memory(memories.local.bytes, outside), given)
    with recording("measured") as recorder:
        FUNCTIONS["tpu_initialize"]()
        kernel(Functions())
    made, call = program_of(recorder), CALLS[kernel.__name__]
    assert [meaning(int(one.engine), one.data) for one in made.commands] == [meaning(*one) for one in call.commands]
    compile_plan(made.groups, memories).run()
    assert Memory(memories.local.bytes, outside).digest() == call.digest
    compute, kind, tolerance = WANTED[kernel.__name__]
    wanted = compute(given)
    found = outside[OUT - CHIP.global_base :][: wanted.size * np.dtype(kind).itemsize].view(kind)
    np.testing.assert_allclose(found.reshape(wanted.shape).astype(float), wanted, rtol=tolerance, atol=tolerance)


def test_every_kernel_is_recorded() -> None:
    assert list(CALLS) == list(WANTED) == [kernel.__name__ for kernel in KERNELS]
