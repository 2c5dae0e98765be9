"""Compile a network for its task and run its samples in the simulator."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import bmcompiler
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.runtime.session import Session
from bmcompiler.target import find_target
from tasks.networks import Network, Run

LOW = find_target("bm1684").pipeline("int8", 2).replace("{scheme=scale}", "{scheme=scale,mode=low}")
"""All layers in the cheapest mode."""


@dataclass(frozen=True)
class Program:
    """A compiled model, and the CPU time in seconds that it took."""

    model: Any
    target: str
    seconds: float

    @property
    def run(self) -> Run:
        session = Session(self.model)
        (given,) = session.inputs
        return lambda x: list(session.run({given.name: x}).values())

    @property
    def cycles(self) -> int:
        """Estimated."""
        return int(find_analyzer(self.target)(self.model, 0).timing().cycles)


def compile_for(net: Network, target: str, precision: str = "int8", samples: int = 32, **options: Any) -> Any:
    """With the target's own options, but for those given; int8 is calibrated on so many samples of the task."""
    if precision == "int8" and target != "dv700":
        options["data"] = net.calibration(samples)
    return bmcompiler.compile(*net.files, target=target, quantize=precision, shapes=[net.shape], **options)


def compiled(net: Network, target: str, precision: str = "int8", samples: int = 32, **options: Any) -> Program:
    """The program of `compile_for`."""
    start = time.process_time()
    result = compile_for(net, target, precision, samples, **options)
    return Program(result.model, target, time.process_time() - start)


def cycle_ratios(net: Network, program: Program, samples: int = 32) -> tuple[float, float]:
    """Cycles of a program of the BM1684, over those of the float32 one and over those of the one all in low."""
    whole = compiled(net, program.target, "f32")
    low = compiled(net, program.target, samples=samples, pipeline=LOW)
    return program.cycles / whole.cycles, program.cycles / low.cycles
