"""The examples that the vendor's page prints, with its slips put right (bmlang.md 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bmcompiler import bmlang
from bmcompiler.bmlang import COMPUTE_CPU, FLOAT32, INT32, PadType, ReduceParam, Tensor


@pytest.fixture(autouse=True)
def program() -> Iterator[None]:
    with bmlang.init(COMPUTE_CPU, "BM1684"):
        yield


def real(values: Any) -> Tensor:
    return Tensor(dtype=FLOAT32, data=np.array(values))


def gives(tensor: Tensor, values: Any) -> None:
    np.testing.assert_array_equal(tensor.get_data(), np.array(values, tensor.get_data().dtype))


def test_permute() -> None:
    assert bmlang.permute(real(np.zeros((6, 7, 8, 9))), (1, 3, 2, 0)).shape == (7, 9, 8, 6)


def test_tile() -> None:
    row, second = [1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]
    gives(bmlang.tile(real([[1, 2, 3], [4, 5, 6]]), [2, 2]), [row, second, row, second])
    gives(bmlang.broadcast(real([[1, 2, 3], [4, 5, 6]]), [2, 2]), [row, second, row, second])


def test_extract() -> None:
    gives(bmlang.extract(real([[1, 2, 3], [4, 5, 6]]), [0, 0], [2, 3], [1, 2]), [[1, 3], [4, 6]])
    gives(bmlang.extract(real(range(10)), [1], [7], [2]), [1, 3, 5])


def test_interleave() -> None:
    a, b = real([[1, 2, 3, 4], [5, 6, 7, 8]]), real([[9, 10, 11, 12], [13, 14, 15, 16]])
    gives(bmlang.interleave(a, b, 1, 2), [[1, 2, 9, 10, 3, 4, 11, 12], [5, 6, 13, 14, 7, 8, 15, 16]])


PADDED = {
    PadType.PAD_CONSTANT: "000000 000000 012300 045600 078900 000000",
    PadType.PAD_REFLECT: "878987 545654 212321 545654 878987 545654",
    PadType.PAD_SYMMETRIC: "445665 112332 112332 445665 778998 778998",
    PadType.PAD_EDGE: "112333 112333 112333 445666 778999 778999",
}


@pytest.mark.parametrize("mode", PadType)
def test_pad(mode: PadType) -> None:
    x = real([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    gives(bmlang.pad(x, 0, [2, 1, 1, 2], mode), [[int(digit) for digit in row] for row in PADDED[mode].split()])


def test_space_to_batch_and_back() -> None:
    x = np.arange(1, 17).reshape(2, 2, 2, 2)
    rows = [[0, 2], [0, 6], [0, 10], [0, 14], [1, 0], [5, 0], [9, 0], [13, 0]]
    rows += [[0, 4], [0, 8], [0, 12], [0, 16], [3, 0], [7, 0], [11, 0], [15, 0]]
    apart = bmlang.space_to_batch(real(x), [2, 2], [0, 0, 1, 1])
    gives(apart, np.reshape(rows, (8, 2, 1, 2)))
    gives(bmlang.batch_to_space(apart, [2, 2], [0, 0, 1, 1]), x)


def test_index_select() -> None:
    x = [[0.1427, 0.0231, -0.5414, -1.0009], [-0.4664, 0.2647, -0.1228, -1.1068], [-1.1734, -0.6571, 0.7230, -0.6004]]
    index = Tensor(dtype=INT32, data=[0, 2])
    gives(bmlang.index_select(real(x), 0, index), [x[0], x[2]])
    gives(bmlang.index_select(real(x), 1, index), [[row[0], row[2]] for row in x])


def test_where() -> None:
    found = bmlang.where(real([[0, 1, 1], [1, 0, 0]]))
    gives(found, [[0, 1], [0, 2], [1, 0]])
    gives(found.count, [3])


def test_upsample() -> None:
    first, second = [2, 2, 3, 3, 4, 4], [7, 7, 8, 8, 9, 9]
    gives(bmlang.upsample(real([[[[2, 3, 4], [7, 8, 9]]]]), 2), [[[first, first, second, second]]])


def test_reduce() -> None:
    x = real(np.zeros((10, 20, 30, 40)))
    assert bmlang.reduce(x, ReduceParam(axis_list=(1, 3), axis_num=2)).shape == (10, 1, 30, 1)


def test_squeeze() -> None:
    x = real(np.zeros((1, 3, 8, 1)))
    assert [bmlang.squeeze(x, axis).shape for axis in ([3], [], [-1])] == [(1, 3, 8), (3, 8), (1, 3, 8)]


def test_reshape() -> None:
    x = real(np.zeros((10, 20, 30, 40)))
    assert bmlang.reshape(x, (0, 10, -1, 10)).shape == (10, 10, 240, 10)
    assert bmlang.reshape_v2(x, Tensor(dtype=INT32, data=[0, 10, -1, 10])).shape == (10, 10, 240, 10)


def test_sequence_gen() -> None:
    gives(bmlang.sequence_gen(Tensor(dtype=INT32, data=[2, 3, 4]), dtype=FLOAT32), np.arange(24).reshape(2, 3, 4))


def test_stride_add() -> None:
    """bmlang.md 4.6: a[offset::stride] + b[offset::stride]; axes of size 1 repeat."""
    a, b = real([[0, 1, 2, 3, 4]]), real([[10]])
    gives(bmlang.stride_add(a, b, [1, 2]), [[10, 12, 14]])
    gives(bmlang.stride_add_offset(a, b, [1, 2], [0, 1]), [[11, 13]])


def test_sort_descends_where_it_is_told_to() -> None:
    """The vendor's text has it the other way round for sort than for topk (bmlang.md 6, row 1)."""
    gives(bmlang.sort(real([3, 1, 2]))[0], [1, 2, 3])
    values, places = bmlang.sort(real([3, 1, 2]), descending=True)
    gives(values, [3, 2, 1])
    gives(places, [0, 2, 1])
    gives(bmlang.argsort(real([3, 3, 3])), [0, 1, 2])


def test_a_table_is_read_by_the_bits_of_the_index() -> None:
    table = Tensor(data=np.arange(256).astype(np.uint8))
    gives(bmlang.lut(Tensor(data=np.array([-1, -128, 0, 127], np.int8)), table), [255, 128, 0, 127])


def test_rounding_shift_is_the_vendors_formula() -> None:
    x = Tensor(data=np.array([-6, -5, 5, 6, 7], np.int16))
    gives(bmlang.round_rshifts(x, 2), [-1, -1, 1, 2, 2])
    gives(bmlang.arith_rshifts(x, 2), [-2, -2, 1, 1, 1])
    gives(bmlang.round_rshifts(x, -3), [-6, -5, 5, 6, 7])


def test_nms_keeps_the_best_of_what_overlaps() -> None:
    boxes = real([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [1, 1, 0, 0]])
    kept = bmlang.nms(boxes, real([0.5, 0.9, 0.3, 0.6]), 0.5)
    gives(kept, [1, 2])
    gives(kept.count, [2])
    gives(bmlang.nms_v2(boxes, real([0.5, 0.9, 0.3, 0.6]), 0.5, 0.4, 2), [1])
    gives(bmlang.nms_v2(boxes, real([0.5, 0.9, 0.25, 0.6]), 0.5, 0.25, 2), [1, 2])
