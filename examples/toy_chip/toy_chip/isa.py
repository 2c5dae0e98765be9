"""The chip and its instructions: one format per engine, both 40 bytes long and told apart by their first bit."""

from enum import IntEnum

from bmcompiler.chip import LaneChip
from bmcompiler.instructions.assembly import Syntax
from bmcompiler.instructions.isa import Format

CHIP = LaneChip("toy", lanes=4, lmem_size=8192, alignment=4)


class Engine(IntEnum):
    COMPUTE = 0
    DMA = 1


class Compute(IntEnum):
    """What the compute engine does with `in` and `arg`, tensors in local memory."""

    CONV = 0  # out = saturate(round_shift(sum + bias, shift)); a row of arg: the weights of a channel, its i16 bias
    MAX_POOL = 1  # padding never wins
    ADD = 2  # out = saturate(round_shift(in * factor_in + arg * factor_arg, shift)), signed factors
    RELU = 3


class Move(IntEnum):
    """What the DMA engine does."""

    LOAD = 0  # global memory (the coefficients, if `constant`) to local memory
    STORE = 1
    COPY = 2  # global_addr to target_addr


ID = {"engine": 1, "op": 2, "id": 32, "wait": 32}
SHAPES = {"n": 16, **{f"{side}_{axis}": 16 for side in ("in", "out") for axis in "chw"}}
WINDOW = {"kernel_h": 8, "kernel_w": 8, "stride_h": 4, "stride_w": 4}
PADS = {f"pad_{side}": 4 for side in ("top", "bottom", "left", "right")}
FACTORS = {"shift": 5, "factor_in": 8, "factor_arg": 8}
ADDRESSES = {"out_addr": 16, "in_addr": 16, "arg_addr": 16}
SIDES = {"constant": 1, "local_addr": 16, "global_addr": 32, "target_addr": 32}
BOX = {"n": 16, "c": 16, "h": 16, "w": 16, "n_str": 32, "c_str": 32, "h_str": 32}
FORMATS: dict[int, Format] = {
    Engine.COMPUTE: Format.packed("compute", 320, {**ID, **ADDRESSES, **SHAPES, **WINDOW, **PADS, **FACTORS}),
    Engine.DMA: Format.packed("dma", 320, {**ID, **SIDES, **BOX}),
}
SYNTAX: dict[int, Syntax] = {
    Engine.COMPUTE: Syntax.of_operations(FORMATS[Engine.COMPUTE], Compute, Engine.COMPUTE),
    Engine.DMA: Syntax.of_operations(FORMATS[Engine.DMA], Move, Engine.DMA),
}
