"""Timing: cycles and bytes of every command. The race check and the trace need nothing more."""

from functools import cached_property

import numpy as np

from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.plain import PlainAnalysis
from toy_chip.container import ToyModel
from toy_chip.isa import CHIP, SYNTAX, Compute, Engine, Move
from toy_chip.simulator import step

START, BUS = 16, 4  # cycles before the first result or byte; bytes per cycle between global and local memory


class Profile:
    clock_hz = 1e8
    bus_bytes_per_cycle = BUS

    def assumptions(self) -> tuple[str, ...]:
        return (f"{BUS} bytes per cycle, {START} cycles per command to start", "host functions take no time")


class ToyAnalysis(PlainAnalysis):
    @cached_property
    def costs(self) -> Costs:
        cycles, macs, weights, loaded, stored = np.zeros((5, len(self.commands)), np.int64)
        f, at = self.fields[Engine.COMPUTE], self.at[Engine.COMPUTE]
        conv = f["op"] == Compute.CONV
        window = np.maximum(1, f["kernel_h"] * f["kernel_w"])  # 0 in commands without a window
        values = f["n"] * f["out_h"] * f["out_w"] * window * np.where(conv, f["in_c"], 1)
        cycles[at] = START + values * -(-f["out_c"] // CHIP.lanes)
        macs[at] = values * f["out_c"] * conv
        f, at = self.fields[Engine.DMA], self.at[Engine.DMA]
        size, constant = f["n"] * f["c"] * f["h"] * f["w"], f["constant"] == 1
        cycles[at] = START + -(-size // BUS)
        weights[at], loaded[at] = size * constant, size * (~constant & (f["op"] != Move.STORE))
        stored[at] = size * (f["op"] != Move.LOAD)
        return Costs(cycles, macs, macs / CHIP.lanes, weights, loaded, stored)


def analyze(model: object, program: int = 0) -> ToyAnalysis:
    return ToyAnalysis(model, program, kind=ToyModel, chip=CHIP, syntaxes=SYNTAX, step=step, profile=Profile())
