"""Custom layers on the BM1880 (the vendor's BMNet Library; bm1880.md 14).

    class MyReLUInst(CustomizedTensorFixedInst):
        def inst_name(self):
            return "MyReLU"                        # the sub type that the frontend's layer class set

        def dump(self):
            print(self.op_.input_shape(0).dims())

        def encode(self):
            for offset, shape in self.flat_pieces(tensors=1):
                with self.local_tensors(shape, 1) as (x,):
                    bmk1880_gdma_load(self.ctx, x, self.op_.global_input(0) + offset, CTRL_NEURON)
                    bmk1880_tpu_relu(self.ctx, bmk1880_relu_param_t(x, x))
                    bmk1880_gdma_store(self.ctx, x, self.op_.global_output(0) + offset, CTRL_NEURON)

A package names the class as entry point of `bmcompiler.tensor_insts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import ClassVar, NamedTuple

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_AL,
    CTRL_NEURON,
    FMT_I8,
    Bmk1880Context,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_store_stride,
    bmk1880_tl_alloc,
    bmk1880_tl_free,
    shape_t,
    shape_t4,
    stride_t,
    stride_t4,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.bmnet.inst import TensorFixedInst
from bmcompiler.chip import Dims
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.errors import UnsupportedError


class RowTile(NamedTuple):
    """Part of a 4-D result: image `n`, channels [c0, c1), rows [h0, h1); and the input rows [first, last) it needs."""

    n: int
    c0: int
    c1: int
    h0: int
    h1: int
    first: int
    last: int


class CustomizedTensorFixedInst(TensorFixedInst):
    """Emits the kernel calls of one custom layer; subclasses define inst_name, dump and encode.

    In `encode`, `ctx` is the kernel context, with all of local memory free. `op_.global_input(i)` and
    `op_.global_output(i)` are offsets of packed int8 tensors: pass them with CTRL_NEURON, those of constant inputs with
    CTRL_WEIGHT. Afterwards all local tensors must be freed and parallel groups and streams be closed.
    """

    target: ClassVar[str] = "bm1880"
    ctx: Bmk1880Context
    _coefficients: Coefficients

    def bind(self, ctx: Bmk1880Context, coefficients: Coefficients) -> None:
        """Called by the code generator before `encode`."""
        self.ctx, self._coefficients = ctx, coefficients

    def unsupported_reason(self) -> str | None:
        """Why the instructions cannot serve this very op (a clause without full stop), None when they can.

        The op then runs as CPU function. `ctx` and addresses are not known yet.
        """
        return None

    def get_global_neuron_base(self) -> int:
        """Base address of activations: 0, the header flag that CTRL_NEURON sets adds the real one (bm1880.md 14)."""
        return 0

    def get_global_weight_base(self) -> int:
        """Base address of weights: 0, as for activations."""
        return 0

    def add_weight(self, data: bytes) -> int:
        """Put constant bytes (a look-up table, say) into the model; returns their offset, to load with CTRL_WEIGHT."""
        return self._coefficients.constant(data)

    # -- local memory --------------------------------------------------------------------------------------------------
    @contextmanager
    def local_tensors(self, shape: shape_t, count: int) -> Iterator[list[tensor_lmem]]:
        """`count` aligned int8 tensors of one shape, freed at the end of the block.

        Raises:
            UnsupportedError: they do not fit local memory together.
        """
        tensors: list[tensor_lmem] = []
        try:
            for _ in range(count):
                tensor = bmk1880_tl_alloc(self.ctx, shape, FMT_I8, CTRL_AL)
                if tensor is None:
                    raise UnsupportedError(
                        f"{count} tensors of shape {list(shape[1:])} exceed {CHIP.lmem_size} bytes per lane",
                        remedy="cut the op with flat_pieces or row_tiles",
                    )
                tensors.append(tensor)
            yield tensors
        finally:
            for tensor in reversed(tensors):
                bmk1880_tl_free(self.ctx, tensor)

    def flat_pieces(self, tensors: int, size: int | None = None) -> Iterator[tuple[int, shape_t]]:
        """For element-wise work: pieces that cover `size` packed bytes (default: the first input), in order.

        Args:
            tensors: how many tensors of a piece's shape lie in local memory at once.

        Yields:
            (offset in bytes, shape (1, lanes, 1, width)): full lanes first, then what does not fill them.
        """
        total = prod(self.op_.input_shape(0).dims()) if size is None else size
        most = min(MAX_TPU_HW, CHIP.lmem_size // tensors // CHIP.alignment * CHIP.alignment)
        offset = 0
        while offset < total:
            lanes = min(CHIP.lanes, total - offset)
            width = min(most, (total - offset) // lanes)
            yield offset, shape_t4(1, lanes, 1, width)
            offset += lanes * width

    def row_tiles(
        self, dims: Dims, tensors: int, window: tuple[int, int, int] = (1, 1, 0), input_rows: int | None = None
    ) -> Iterator[RowTile]:
        """Tiles of a result of shape `dims` (N, C, H, W), with all of W, `tensors` of whose shape fit at once.

        Args:
            window: (rows of a window, stride, rows of padding above): how result rows need input rows; a tile's input
                rows are counted as rows of `tensors`, too, and lie within [0, input_rows).
            input_rows: height of the input, default that of the result.

        Raises:
            UnsupportedError: not even one row of one lane fits.
        """
        n, c, h, w = dims
        kernel, stride, above = window
        height = h if input_rows is None else input_rows
        blocks = min(-(-c // CHIP.lanes), MAX_TPU_DIM // CHIP.lanes)
        rows = min(h, MAX_TPU_HW)

        def fits(lanes: int, rows: int) -> bool:
            return CHIP.lane_bytes((1, lanes, (rows - 1) * stride + kernel, w)) * tensors <= CHIP.lmem_size

        while blocks > 1 and not fits(blocks * CHIP.lanes, rows):
            blocks -= 1
        while rows and not fits(blocks * CHIP.lanes, rows):
            rows -= 1
        if not rows or w > MAX_TPU_HW:
            raise UnsupportedError(f"{tensors} tensors with one row of {list(dims)} exceed local memory")
        step = blocks * CHIP.lanes
        for image in range(n):
            for c0 in range(0, c, step):
                for h0 in range(0, h, rows):
                    h1 = min(h, h0 + rows)
                    first, last = h0 * stride - above, (h1 - 1) * stride - above + kernel
                    yield RowTile(image, c0, min(c, c0 + step), h0, h1, max(first, 0), min(last, height))

    def load_rows(self, tensor: tensor_lmem, index: int, n: int, c0: int, h0: int) -> None:
        """Load the part of 4-D input `index` that begins at (n, c0, h0, 0) and has the shape of `tensor`."""
        shape = self.op_.input_shape(index).dims()
        start, strides = _place(shape, n, c0, h0)
        bmk1880_gdma_load_stride(self.ctx, tensor, self.op_.global_input(index) + start, strides, CTRL_NEURON)

    def store_rows(self, tensor: tensor_lmem, index: int, n: int, c0: int, h0: int) -> None:
        """The way back of `load_rows`, to output `index`."""
        shape = self.op_.output_shape(index).dims()
        start, strides = _place(shape, n, c0, h0)
        bmk1880_gdma_store_stride(self.ctx, tensor, self.op_.global_output(index) + start, strides, CTRL_NEURON)


def _place(shape: tuple[int, ...], n: int, c: int, h: int) -> tuple[int, stride_t]:
    images, channels, rows, columns = shape
    strides = dense_strides((images, channels, rows, columns))
    return n * strides[0] + c * strides[1] + h * strides[2], stride_t4(*strides)
