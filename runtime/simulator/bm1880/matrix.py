"""Matrix products (TIU tasks 2 and 4; bm1880.md 4.2, 8.2)."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import matmul
from bmcompiler.runtime.simulator.bm1880.operands import Operands, check_work
from bmcompiler.runtime.simulator.plan import Step


def matrix_mac_step(ops: Operands) -> Step:
    """Step of matrix_mac: left (R, K) x right (K, columns) [+ bias] [+ old << left shift], then ReLU, shift, saturate.

    Matrices are tensors of 16 or 32 columns per channel; opd1_w is the width of the last left chunk. The padding
    columns of the last result chunk are computed from whatever the right operand holds there.
    """
    f = ops.fields
    rows, left_chunks, left_h, left_w = ops.shape("opd0")
    depth, right_chunks, _, last_w = ops.shape("opd1")
    out_rows, chunks, out_h, out_w = ops.shape("res0")
    if left_h != 1 or out_h != 1:
        raise SimulatorError("matrix operands must have height 1")
    if out_rows != rows or right_chunks != chunks:
        raise SimulatorError(f"result {out_rows} x {chunks} cannot hold {rows} x {right_chunks} chunks")
    if not 1 <= last_w <= left_w or depth != (left_chunks - 1) * left_w + last_w:
        raise SimulatorError(f"left matrix of {left_chunks} chunks, the last of {last_w} columns, is not {depth} deep")
    check_work(rows * depth * chunks * out_w)
    left = ops.tensor("opd0")
    right = ops.tensor("opd1", (depth, chunks, 1, out_w))
    out, bias, requantize = ops.result(), ops.bias((1, chunks, 1, out_w)), ops.requantizer()
    accumulate = ops.add_old(ops.old()) if f["opt_res_add"] else None

    def run() -> None:
        a = left.read().reshape(rows, -1)[:, :depth]
        sums = matmul(a, right.read().reshape(depth, -1)).reshape(out.shape)
        if bias is not None:
            sums = sums + bias()
        if accumulate is not None:
            sums = accumulate(sums)
        out.write(requantize(sums))

    return run


def matrix_fold_step(ops: Operands) -> Step:
    """Step of matrix_mac_2: left x transposed right; the result byte is low byte + second byte of the sum."""
    left, right, out = ops.tensor("opd0"), ops.tensor("opd1"), ops.tensor("res0")
    _, rows, _, depth = left.shape
    columns = right.shape[0]
    deep = right.shape[1] * right.shape[2] * right.shape[3]
    if left.shape[0] != 1 or left.shape[2] != 1 or deep != depth or out.shape != (1, rows, 1, columns):
        raise SimulatorError(f"shapes {left.shape}, {right.shape}, {out.shape} do not form a product")
    check_work(rows * columns * depth)

    def run() -> None:
        sums = matmul(left.read().reshape(rows, depth), right.read().reshape(columns, depth).T)
        out.write(((sums & 255) + ((sums >> 8) & 255)).astype(np.uint8).reshape(out.shape))

    return run
