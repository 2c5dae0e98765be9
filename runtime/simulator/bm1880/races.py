"""Which bytes BM1880 commands read and write, vectorised: the same tensors as the simulator's operands."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import Direction, GdmaFunction, StrideCode, Task, TensorOp, WindowOp
from bmcompiler.numeric.arrays import Ints, Mask
from bmcompiler.runtime.simulator.bm1880.decoded import Decoded
from bmcompiler.runtime.simulator.boxes import Boxes, Four, Use
from bmcompiler.runtime.simulator.races import Accesses

SPACES = (
    "bytes {lo} to {hi} of lanes {row_lo} to {row_hi}",
    "bytes {lo} to {hi} of global memory",
    "bytes {lo} to {hi} of activation memory",
    "bytes {lo} to {hi} of weight memory",
    "bytes {lo} to {hi} of relocated memory",
)
"""Local memory, then global memory by the two flag bits of a record's header."""
_LUT_BYTES = 256


def accesses(decoded: Decoded) -> Accesses:
    """Everything the commands of a program read and write."""
    found = Boxes(CHIP.lanes, CHIP.lmem_size, SPACES)
    _Tpu(decoded, found).collect()
    _Gdma(decoded, found).collect()
    return found.result()


def _groups(channels: Ints) -> Ints:
    return -(-channels // CHIP.lanes)


def _aligned(pixels: Ints) -> Ints:
    return -(-pixels // CHIP.alignment) * CHIP.alignment


class _Tpu:
    """Operands of TPU instructions (bm1880.md 4, 8.2)."""

    def __init__(self, decoded: Decoded, found: Boxes) -> None:
        self.f, self.at, self.found = decoded.tpu, decoded.tpu_at, found
        self.lane = self.f["res0_addr"] // CHIP.lmem_size
        self.one = np.ones_like(self.lane)

    def collect(self) -> None:
        f = self.f
        task, unit = f["tsk_typ"], f["tsk_eu_typ"]
        tensor = task == Task.TENSOR
        lut = tensor & (f["tens_lookup"] == 1)
        mdsum = tensor & ~lut & (f["tens_mdsum"] == 1)
        arithmetic = tensor & ~lut & ~mdsum
        copy = arithmetic & (unit == TensorOp.COPY)
        binary = arithmetic & ~copy
        self._windows()
        self._matrices()
        self._table(lut)
        self._tensor(~arithmetic, "opd0")
        self._tensor(copy, "opd0")
        self._tensor(binary & (f["opt_opd0_const"] == 0), "opd0", wide=True)
        self._tensor(binary & (f["opt_opd1_const"] == 0), "opd1", wide=True)
        self._tensor(~mdsum & ~lut & ~copy, "res0", wide=True, write=True)
        self._tensor(lut | copy, "res0", write=True)
        self._sums(mdsum)
        accumulate = (task == Task.MATRIX_MAC) & (f["opt_res_add"] == 1)
        self._tensor(accumulate | (binary & (unit == TensorOp.MAC)), "res0", wide=None)

    def _shape(self, name: str) -> Four:
        f = self.f
        return (f[f"{name}_n"], f[f"{name}_c"], f[f"{name}_h"], f[f"{name}_w"])

    def _strides(self, name: str, shape: Four) -> Four:
        f, code = self.f, self.f[f"short_{name}_str"]
        _, c, h, w = shape
        channel = np.where(code == StrideCode.ALIGNED, _aligned(h * w), h * w)
        explicit = code == StrideCode.EXPLICIT
        default = (_groups(c) * channel, channel, w, self.one)
        n_str, c_str, h_str, w_str = (
            np.where(explicit, f[f"{name}_{axis}_str"], value) for axis, value in zip("nchw", default)
        )
        return n_str, c_str, h_str, w_str

    def _tensor(
        self,
        mask: Mask,
        name: str,
        shape: Four | None = None,
        strides: Four | None = None,
        *,
        wide: bool | None = False,
        write: bool = False,
    ) -> None:
        """An operand, with its high plane if `wide` and the flags say 16 bits, or (None) whatever they say."""
        shape = shape or self._shape(name)
        strides = strides or self._strides(name, shape)
        address = self.f[f"{name}_addr"]
        lane = self.lane if name in ("opd1", "opd2") else address // CHIP.lmem_size
        offset = address % CHIP.lmem_size
        self.found.local(Use(self.at, mask, write), (lane, offset), shape, strides)
        if wide is False:
            return
        explicit = self.f[f"short_{name}_str"] == StrideCode.EXPLICIT
        distance = np.where(explicit, self.f[f"{name}_b_str"], shape[0] * strides[0])
        high = mask & (self.f[f"opt_{name}_int8"] == 0) if wide else mask
        self.found.local(Use(self.at, high, write), (lane, offset + distance), shape, strides)

    def _windows(self) -> None:
        """Weights and bias of convolutions, depthwise convolutions and average pooling."""
        f = self.f
        task, unit = f["tsk_typ"], f["tsk_eu_typ"]
        conv, depthwise = task == Task.CONV, (task == Task.WINDOW) & (unit == WindowOp.DEPTHWISE)
        average = (task == Task.WINDOW) & (unit == WindowOp.AVG_POOLING)
        size = f["opd1_n"] * f["opd1_h"] * f["opd1_w"]
        packed = conv & (f["short_opd1_str"] == StrideCode.SPECIAL) & (f["opt_winograd"] == 0)
        shape = (self.one, f["opd1_c"], self.one, size)
        self._tensor(packed, "opd1", shape, (size * f["opd1_c"], size, size, self.one))
        self._tensor(conv & ~packed, "opd1")
        self._tensor(depthwise, "opd1", (self.one, f["opd0_c"], f["opd1_h"], f["opd1_w"]))
        self._bias(conv | depthwise | average, self._shape("opd2"))

    def _bias(self, mask: Mask, shape: Four) -> None:
        used = mask & (self.f["tsk_opd_num"] == 3) & (self.f["opt_opd2_const"] == 0)
        self._tensor(used, "opd2", shape, wide=True)

    def _matrices(self) -> None:
        """Right operands; opd1_w of matrix_mac belongs to the left one (bm1880.md 4.2)."""
        f = self.f
        mac = f["tsk_typ"] == Task.MATRIX_MAC
        self._tensor(mac, "opd1", (f["opd1_n"], f["opd1_c"], self.one, f["res0_w"]))
        self._bias(mac, self._shape("opd2"))
        self._tensor(f["tsk_typ"] == Task.MATRIX_MAC_2, "opd1")

    def _table(self, mask: Mask) -> None:
        """Lookup tables: 256 bytes at one offset of every lane."""
        shape = (self.one, self.one * CHIP.lanes, self.one, self.one * _LUT_BYTES)
        place = (self.one * 0, self.f["opd1_addr"])
        self.found.local(Use(self.at, mask), place, shape, (self.one, self.one * _LUT_BYTES, self.one, self.one))

    def _sums(self, mask: Mask) -> None:
        """Results of mdsum: one byte per channel, packed when the stride code says so."""
        channels = self.f["opd0_c"]
        shape = (self.one, channels, self.one, self.one)
        compact = self.f["short_res0_str"] == StrideCode.SPECIAL
        self._tensor(mask & compact, "res0", shape, (_groups(channels), self.one, self.one, self.one), write=True)
        self._tensor(mask & ~compact, "res0", shape, write=True)


class _Gdma:
    """The two sides of transfers (bm1880.md 5)."""

    def __init__(self, decoded: Decoded, found: Boxes) -> None:
        self.f, self.at, self.found = decoded.gdma, decoded.gdma_at, found
        self.flags = decoded.flags[decoded.gdma_at]
        self.one = np.ones_like(self.at)

    def collect(self) -> None:
        f = self.f
        direction, function = f["direction"], f["function"]
        ends = (direction == Direction.LOAD) | (direction == Direction.STORE)
        matrix = ends & (f["matrix"] == 1)
        transposed = (function == GdmaFunction.TRANSPOSE) & ~matrix
        for side, batch, outside in (
            ("src", f["src_n"], (Direction.LOAD, Direction.GLOBAL)),
            ("dst", np.where(transposed, f["src_c"], f["src_n"]), (Direction.STORE, Direction.GLOBAL)),
        ):
            used = function != GdmaFunction.FILL if side == "src" else self.one == 1
            remote = (direction == outside[0]) | (direction == outside[1])
            self._remote(side, used & remote, matrix, batch)
            self._local(side, used & ~remote, matrix, batch)

    def _address(self, side: str) -> Ints:
        return self.f[f"{side}_addr_lo"] | self.f[f"{side}_addr_hi"] << 32

    def _strides(self, side: str, default: Four) -> Four:
        f = self.f
        explicit = f["enable_stride"] == 1
        channel = f[f"{side}_c_str_lo"] | f[f"{side}_c_str_hi"] << 16
        n_str, c_str, h_str = (
            np.where(explicit, given, value)
            for given, value in zip((f[f"{side}_n_str"], channel, f[f"{side}_h_str"]), default)
        )
        return n_str, c_str, h_str, self.one

    def _remote(self, side: str, mask: Mask, matrix: Mask, batch: Ints) -> None:
        f = self.f
        n, c = np.where(matrix, 1, batch), np.where(matrix, 1, f[f"{side}_c"])
        h, w = f[f"{side}_h"], f[f"{side}_w"]
        n_str, c_str, h_str, w_str = self._strides(side, (c * h * w, h * w, w, self.one))
        strides = (n_str, c_str, np.where(matrix, f[f"{side}_h_str"], h_str), w_str)
        address = self._address(side) - CHIP.global_base
        self.found.remote(Use(self.at, mask, side == "dst"), 1 + self.flags, address, (n, c, h, w), strides)

    def _local(self, side: str, mask: Mask, matrix: Mask, batch: Ints) -> None:
        f = self.f
        other = "src" if side == "dst" else "dst"
        across = f["function"] == GdmaFunction.TRANSPOSE
        rows = np.where(across, f[f"{other}_w"], f[f"{other}_h"])
        n, h = np.where(matrix, rows, batch), np.where(matrix, 1, f[f"{side}_h"])
        c, w = f[f"{side}_c"], f[f"{side}_w"]
        place = self._address(side) - CHIP.lmem_window
        lane, offset = place // CHIP.lmem_size, place % CHIP.lmem_size
        channel = _aligned(h * w)
        strides = self._strides(side, (_groups(lane + c) * channel, channel, w, self.one))
        write = side == "dst"
        if write:  # an LRN shift also clears the channels it moves away from
            shift = f["function"] == GdmaFunction.LRN_SHIFT
            step = np.where(shift, f["lrn_step"], 0)
            lane, c = lane - step * (f["lrn_right"] == 1), c + step
        self.found.local(Use(self.at, mask, write), (lane, offset), (n, c, h, w), strides)
