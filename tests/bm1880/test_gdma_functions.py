"""What the transfer engine makes of tensors of any shape, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NULL,
    CTRL_TP,
    CTRL_WINOGRAD,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_lrn_shift,
    bmk1880_gdma_store,
    bmk1880_register,
    bmk1880_tl_prealloc,
    bmk1880_tl_prealloc_align,
    shape_t4,
)
from bmcompiler.runtime.simulator.bm1880 import Memories, compile_plan

Quad = tuple[int, int, int, int]
SHAPES: list[Quad] = [(1, 1, 1, 1), (1, 3, 2, 1), (2, 5, 1, 3), (3, 33, 2, 2), (2, 70, 3, 2)]
"""The last axis counts kernels where kernels are transformed."""
ROOM = 1 << 17


def random_bytes(*shape: int) -> NDArray[np.int8]:
    return np.random.default_rng(sum(shape)).integers(-128, 128, shape, np.int8)


def through_local_memory(
    x: NDArray[np.int8], result: Quad, ctrls: int, aligned: bool, shift: tuple[bool, int] | None = None
) -> NDArray[np.int8]:
    """Load packed `x` as a tensor of shape `result`, `shift` it to the right or not by some channels, and store it."""
    memory = np.zeros(2 * ROOM, np.uint8)
    memory[: x.size] = x.reshape(-1).view(np.uint8)
    memories, ctx = Memories(), bmk1880_register()
    memories.globals.map(0, memory)
    make = bmk1880_tl_prealloc_align if aligned else bmk1880_tl_prealloc
    local = make(ctx, 0, shape_t4(*result), FMT_I8)
    bmk1880_gdma_load(ctx, local, 0, ctrls)
    if shift:
        moved = make(ctx, 16384, shape_t4(*result), FMT_I8)
        bmk1880_gdma_lrn_shift(ctx, moved, local, *shift)
        local = moved
    bmk1880_gdma_store(ctx, local, ROOM, CTRL_NULL)
    compile_plan(bmk1880_acquire_cmdbuf(ctx), memories).run()
    return memory[ROOM : ROOM + np.prod(result)].view(np.int8).reshape(result)


@pytest.mark.parametrize("factor", [0, 3, 15])
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_of_3x3_become_4x4(shape: Quad, factor: int) -> None:
    """bm1880.md 5.4, element by element."""
    n, c, h, kernels = shape
    x = random_bytes(n, c, h, kernels * 9)
    a = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
    spread = np.einsum("ij,nchkjl,ml->nchkim", a, x.reshape(n, c, h, kernels, 3, 3).astype(np.int64), a)
    want = np.clip((((spread + 2) // 4) * (factor + 1) + 4) // 8, -128, 127)
    result = (n, c, h, kernels * 16)
    got = through_local_memory(x, result, CTRL_WINOGRAD | factor << 28, aligned=False)
    np.testing.assert_array_equal(got, want.reshape(result))


@pytest.mark.parametrize("shape", SHAPES)
def test_images_and_channels_change_places(shape: Quad) -> None:
    n, c, h, w = shape
    x = random_bytes(c, n, h, w)
    np.testing.assert_array_equal(through_local_memory(x, shape, CTRL_TP, aligned=True), x.transpose(1, 0, 2, 3))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(("shape", "step"), [(s, step) for s in SHAPES for step in (1, 2, 15) if step < s[1]])
def test_channels_move_by_a_step_and_leave_zeros(shape: Quad, step: int, right: bool) -> None:
    x = random_bytes(*shape)
    want = np.zeros_like(x)
    if right:
        want[:, step:] = x[:, :-step]
    else:
        want[:, :-step] = x[:, step:]
    np.testing.assert_array_equal(through_local_memory(x, shape, CTRL_NULL, aligned=True, shift=(right, step)), want)
