"""Custom layers on the BM1880 (seed 000, BMNet Library; bm1880.md 14).

    class MyReLUInst(CustomizedTensorFixedInst):
        def inst_name(self):
            return "MyReLU"                        # the sub type that the frontend's layer class set

        def dump(self):
            print(self.op_.input_shape(0).dims())

        def encode(self):
            shape = shape_t4(*self.op_.input_shape(0).dims())
            x = bmk1880_tl_alloc(self.ctx, shape, FMT_I8, CTRL_AL)
            bmk1880_gdma_load(self.ctx, x, self.op_.global_input(0), CTRL_NEURON)
            bmk1880_tpu_relu(self.ctx, bmk1880_relu_param_t(x, x))
            bmk1880_gdma_store(self.ctx, x, self.op_.global_output(0), CTRL_NEURON)
            bmk1880_tl_free(self.ctx, x)

A package names the class as entry point of `bmcompiler.tensor_insts`.
"""

from __future__ import annotations

from typing import ClassVar

from bmcompiler.backends.bm1880.bmkernel import Bmk1880Context
from bmcompiler.bmnet.inst import TensorFixedInst
from bmcompiler.codegen.coefficients import Coefficients


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
