"""The BM1684 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module, Operation
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import Compiled, Kernel, LayerGroup, Target, group_layers


class Bm1684Target(Target):
    """fp32 and int8 in one net; what has no kernel runs on the host CPU inside the same model."""

    name = "bm1684"
    precisions: Sequence[str] = ("f32", "int8")

    def kernels(self) -> Sequence[Kernel]:
        """All kernels, in the order of the manual."""
        from bmcompiler.backends.bm1684.kernels.table import KERNELS

        return KERNELS

    def cycles(self, op: Operation) -> int | None:
        """Estimated TIU cycles of an op with its transfers (bm1684.md 12), None where no kernel has an estimate."""
        from bmcompiler.codegen.kernels import DeviceKernel

        kernel = self.kernel_for(op)
        return kernel.estimate(op) if isinstance(kernel, DeviceKernel) and isinstance(op, TensorOp) else None

    def layer_groups(self, function: Function, level: int) -> list[LayerGroup]:
        """The groups of ops that are computed slice by slice."""
        from bmcompiler.backends.bm1684.codegen import Bm1684Program

        return Bm1684Program.layer_groups(function, self, level)

    def local_cycles(self, op: Operation) -> int | None:
        """Estimated TIU cycles of an op as one tile whose data is in local memory, None when it is none."""
        from bmcompiler.codegen.kernels import DeviceKernel

        kernel = self.kernel_for(op)
        work = kernel.whole(op) if isinstance(kernel, DeviceKernel) and isinstance(op, TensorOp) else None
        return None if work is None else work.cycles

    def image_slots(self, dtype: str) -> int:
        """Four images of bytes share a word, two of halfwords (bm1684.md 4.2)."""
        return {"i8": 4, "u8": 4, "i16": 2, "u16": 2}.get(dtype, 1)

    def pipeline(self, precision: str, level: int) -> str:
        """Default passes. Raises UsageError for a precision the chip does not have.

        Calibration is by mean squared error: measured best on the small regression outputs of MTCNN O-Net, and as good
        as kl elsewhere (tests/bm1684/test_bm1684_networks_int8.py).
        """
        before = "single-precision,absorb-qdq,canonicalize,narrow-borders,legalize{form=same},merge-reshapes"
        joined, split = (",join-groups", ",split-deconv") if level > 1 else ("", "")
        groups = split + group_layers(level)
        if precision == "f32":
            return f"{before},fuse-activation{joined},dead-code{groups}"
        if precision == "int8":
            slots = ",fill-image-slots" if level > 1 else ""
            after = f"dead-code{joined}{slots}{groups}"
            return f"{before},fuse-activation,calibrate{{method=mse}},quantize{{scheme=scale}},{after}"
        raise UsageError(f"bm1684 computes in f32 and int8, not in {precision}", remedy="use --quantize f32 or int8")

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        """One net with a stage per module (input shape)."""
        from bmcompiler.backends.bm1684.codegen import Bm1684Program
        from bmcompiler.backends.bm1684.isa import Engine
        from bmcompiler.bmodel.bm1684 import Bm1684Model, Bm1684Net
        from bmcompiler.codegen.program import compile_programs
        from bmcompiler.codegen.rows import memory_totals

        programs, compiled = compile_programs(modules, lambda module, pool: Bm1684Program(module, self, pool, level))
        first = programs[0]
        compiled.totals = {
            **memory_totals(first.plan),
            "weight memory": first.coefficients.size,
            "TIU commands": first.build.counts[Engine.TIU],
            "GDMA commands": first.build.counts[Engine.GDMA],
        }
        compiled.model = Bm1684Model([Bm1684Net(modules[0].main.name, [program.stage() for program in programs])])
        return compiled

    def disassemble(self, model: Any, net: int | None = None) -> str:
        """All programs (or one) of a model as text, layer names as comments."""
        from bmcompiler.backends.bm1684.listing import listing

        return listing(model, net)


TARGET = Bm1684Target()
