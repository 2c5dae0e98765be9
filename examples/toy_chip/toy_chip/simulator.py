"""The chip itself: every command becomes a step over views of local and global memory."""

from collections.abc import Callable

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric import arith
from bmcompiler.runtime.plain_device import PlainDevice
from bmcompiler.runtime.simulator.memories import Memories
from toy_chip.container import ToyModel
from toy_chip.isa import CHIP, FORMATS, Compute, Engine, Move

Step = Callable[[], None]


def step(memories: Memories, engine: int, fields: Fields) -> Step:
    """What a command does. Raises SimulatorError for operands outside their memory."""
    if fields["op"] not in set(Compute if engine == Engine.COMPUTE else Move):
        raise SimulatorError(f"operation {fields['op']} does not exist")
    return _compute(memories, fields) if engine == Engine.COMPUTE else _move(memories, fields)


def _move(memories: Memories, f: Fields) -> Step:
    shape, strides = (f["n"], f["c"], f["h"], f["w"]), (f["n_str"], f["c_str"], f["h_str"], 1)
    if f["op"] == Move.STORE:
        source, target = memories.map(f["local_addr"], shape), memories.area(f["global_addr"], shape, strides)
    else:
        source = memories.area(f["global_addr"], shape, strides, bool(f["constant"]))
        copy = f["op"] == Move.COPY
        target = memories.area(f["target_addr"], shape, strides) if copy else memories.map(f["local_addr"], shape, True)
    return lambda: target.write(source.read())


def _compute(memories: Memories, f: Fields) -> Step:
    shape = (f["n"], f["out_c"], f["out_h"], f["out_w"])
    out = memories.map(f["out_addr"], shape, True)
    if f["op"] in (Compute.RELU, Compute.ADD):
        x = memories.map(f["in_addr"], shape)
        if f["op"] == Compute.RELU:
            return lambda: out.write(np.maximum(x.read(), 0))
        y, (a, b) = memories.map(f["arg_addr"], shape), np.array([f["factor_in"], f["factor_arg"]]).astype(np.int8)
        return lambda: out.write(arith.requantize(x.read() * np.int32(a) + y.read() * np.int32(b), f["shift"], "i8"))
    kernel, strides = (f["kernel_h"], f["kernel_w"]), (f["stride_h"], f["stride_w"])
    pads = (f["pad_top"], f["pad_bottom"], f["pad_left"], f["pad_right"])
    x = memories.map(f["in_addr"], (f["n"], f["in_c"], f["in_h"], f["in_w"]))
    if f["op"] == Compute.MAX_POOL:
        return lambda: out.write(arith.pool_max(x.read(), kernel, strides, pads))
    size = f["in_c"] * kernel[0] * kernel[1]
    arg = memories.map(f["arg_addr"], (1, f["out_c"], 1, size + 2))

    def convolve() -> None:
        rows = arg.read().reshape(f["out_c"], size + 2)
        bias = rows[:, size:].copy().view("<i2").reshape(-1, 1, 1)
        weight = rows[:, :size].reshape(f["out_c"], f["in_c"], *kernel)
        sums = arith.conv2d(x.read(), weight, strides=strides, pads=pads)
        out.write(arith.requantize(sums + bias, f["shift"], "i8"))

    return convolve


class ToyDevice(PlainDevice):
    kind, chip, formats = ToyModel, CHIP, FORMATS
    step = staticmethod(step)
