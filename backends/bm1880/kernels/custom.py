"""Custom layers: a plugin's class emits the commands."""

from __future__ import annotations

from bmcompiler.backends.bm1880.build import Build
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst
from bmcompiler.backends.bm1880.kernels.base import DeviceKernel, is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.custom import Customized
from bmcompiler.plugins.custom_layers import GROUP, cpu_function
from bmcompiler.plugins.registry import PluginError, failure_note, plugin_code
from bmcompiler.target import rule


class CustomKernel(DeviceKernel[Customized]):
    """customized: what the class registered for its sub type emits; without one, the CPU function runs."""

    ops = (Customized,)

    @rule(f"Its type needs instructions (a CustomizedTensorFixedInst in entry point group '{GROUP}')", got="sub_type")
    def has_instructions(self, op: Customized) -> bool:
        return _inst(op) is not None

    @rule("Operands and results must be int8")
    def integer_types(self, op: Customized) -> bool:
        return all(v.dtype == "i8" for v in (*op.operands, *op.results))

    def unsupported_reason(self, op: Customized) -> str | None:
        """Also asks the plugin. Raises UnsupportedError when nobody can run the layer."""
        reason = super().unsupported_reason(op)
        if reason is None:
            inst = _inst(op)
            assert inst is not None, "a rule of the kernel found it"
            with plugin_code(f"the instruction class of custom layer '{op.sub_type}'"):
                reason = inst.unsupported_reason()
        if reason is not None and cpu_function(op.sub_type) is None:
            raise UnsupportedError(
                f"custom layer type '{op.sub_type}' can run neither on bm1880 ({reason}) nor on the CPU "
                "(no CPU function is registered)",
                layer=op.label,
                kind=op.sub_type,
                remedy=f"install the plugin for it (entry point group '{GROUP}')" + failure_note(GROUP),
            )
        return reason

    def emit(self, op: Customized, build: Build) -> Moved:
        inst = _inst(op, build)
        assert inst is not None, "a rule of the kernel found it"
        inst.bind(build.ctx, build.coefficients)
        what = f"encode() of custom layer '{op.sub_type}'"
        with plugin_code(what):
            inst.encode()
        build.foreign()
        if build.ctx.lmem.live or not build.ctx.sync.serial:
            left = f"{build.ctx.lmem.live} local tensors unfreed" if build.ctx.lmem.live else "a parallel group open"
            raise PluginError(f"{what} leaves {left}", remedy="repair the plugin, or tell its author")
        constants = sum(v.type.nbytes for v in op.operands if is_constant(v))
        loaded = sum(v.type.nbytes for v in op.operands)
        return Moved(loaded, sum(v.type.nbytes for v in op.results), constants, 1)


def _inst(op: TensorOp, build: Build | None = None) -> CustomizedTensorFixedInst | None:
    assert isinstance(op, Customized), "the kernel is of this op"
    if build is None:
        inst = op.inst(CustomizedTensorFixedInst.target)
    else:
        inputs = [_offset(build, value) for value in op.operands]
        outputs = [build.neuron(value) for value in op.results]
        inst = op.inst(CustomizedTensorFixedInst.target, inputs, outputs)
    return inst if isinstance(inst, CustomizedTensorFixedInst) else None


def _offset(build: Build, value: Value) -> int:
    """Offset from the base that the value's kind of memory has; constants lie packed in weight memory."""
    root = root_of(value)
    return build.coefficients.place(root, "plain", lambda w: w) if is_constant(root) else build.neuron(value)
