"""The instruction builder that kernels emit through."""

from bmcompiler.chip import Dims
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.plain import PlainBuild
from bmcompiler.ir import Value
from toy_chip.isa import CHIP, FORMATS, Compute, Engine, Move


class Build(PlainBuild):
    """The base class numbers the commands, and finds out from what they touch which has to wait for which."""

    formats = FORMATS

    def compute(self, op: Compute, reads: list[Range], writes: list[Range], **fields: int) -> None:
        self.add(Engine.COMPUTE, reads, writes, {"op": op, **fields})

    def load(self, start: int, constant: bool, shape: Dims, strides: Dims, address: int) -> None:
        fields = {"op": Move.LOAD, "constant": int(constant), "global_addr": start, "local_addr": address}
        self.add(Engine.DMA, [], [(address, address + CHIP.lane_bytes(shape))], {**fields, **_box(shape, strides)})

    def store(self, start: int, shape: Dims, strides: Dims, address: int) -> None:
        fields = {"op": Move.STORE, "global_addr": start, "local_addr": address}
        self.add(Engine.DMA, [(address, address + CHIP.lane_bytes(shape))], [], {**fields, **_box(shape, strides)})

    def copy(self, value: Value, start: int, shape: Dims, target: int) -> None:
        """Bytes of a value, from `start` on, to another place in neuron memory, where the DMA alone works."""
        offset, constant = self.stored(value)
        fields = {"constant": int(constant), "global_addr": offset + start, "target_addr": target}
        self.add(Engine.DMA, [], [], {"op": Move.COPY, **fields, **_box(shape, dense_strides(shape))})


def _box(shape: Dims, strides: Dims) -> dict[str, int]:
    return {**dict(zip("nchw", shape)), **dict(zip(("n_str", "c_str", "h_str"), strides))}
