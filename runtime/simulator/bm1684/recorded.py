"""Recorded command lists of kernels that were timed on real chips, and what the timing model says of them.

A file (.npz) holds `manifest`, JSON as bytes: `cases` (op, number, shape, microseconds measured) and `kernels` (key,
op, case). Arrays of each key: `_engine` uint8 per record in program order (0 TIU, 1 GDMA, 2: the host waits for both
engines), `_wait` int32: how many records back the awaited one of the other engine lies, 0 = none, `_issue` uint16:
instructions of the host before the record, `_tiu` and `_gdma` uint8 (128, n): commands, each byte as the difference to
that of the command before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.isa import FORMATS
from bmcompiler.backends.bm1684.timing_profile import PROFILE, TimingProfile
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.order import STREAMS
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.simulator.bm1684.cost import cycles_of

_HOST = 2


@dataclass(frozen=True)
class ByHand:
    """What kernels launched by hand cost beside their commands; static programs have nothing of it.

    Attributes:
        launch: microseconds of launch and return, by op (bm1684-timing.md 3: 22 to 57).
        issue: microseconds of the chip's processor for a command. instruction: for each of its instructions.
    """

    launch: Mapping[str, float]
    issue: float = 2.2
    instruction: float = 0.018


BY_HAND = ByHand({"conv2d": 30, "depthwise": 57, "matmul": 37, "softmax": 23})


@dataclass(frozen=True)
class Comparison:
    """One case: the shortest estimate of its kernels against the measurement, both in microseconds."""

    op: str
    case: int
    measured: float
    estimate: float
    kernel: str

    @property
    def error(self) -> float:
        """How many times too long or too short the estimate is: 1 or more."""
        return max(self.measured / self.estimate, self.estimate / self.measured)


def compare(path: Path, profile: TimingProfile = PROFILE, by_hand: ByHand = BY_HAND) -> list[Comparison]:
    """Every case of a file. Raises FileFormatError for a file that is none."""
    try:
        with np.load(path) as arrays:
            manifest = json.loads(arrays["manifest"].tobytes())
            estimates: dict[tuple[str, int], list[tuple[float, str]]] = {}
            for kernel in manifest["kernels"]:
                key, op = kernel["key"], kernel["op"]
                if f"{key}_engine" in arrays:
                    found = microseconds(arrays, key, profile, by_hand) + by_hand.launch[op]
                    estimates.setdefault((op, kernel["case"]), []).append((found, key))
    except (OSError, ValueError, KeyError) as error:
        raise FileFormatError(f"{path} holds no recorded command lists: {error}") from error
    found_cases = []
    for case in manifest["cases"]:
        of_case = case["op"], case["case"]
        if of_case in estimates:
            found_cases.append(Comparison(*of_case, case["measured_lowest_us"], *min(estimates[of_case])))
    return found_cases


def microseconds(arrays: Any, key: str, profile: TimingProfile, by_hand: ByHand) -> float:
    """From the first command that the processor issues to the end of the last."""
    commands = {engine: restored(arrays[f"{key}_{engine.name.lower()}"]) for engine in STREAMS}
    taken = {}
    for engine, raw in commands.items():
        fields = FORMATS[engine].decode(raw.reshape(-1))
        taken[int(engine)] = iter((np.asarray(cycles_of(engine, fields, profile)) / profile.clock_hz * 1e6).tolist())
    issuing, free, ends = 0.0, [0.0, 0.0], []
    records = (arrays[f"{key}_{name}"].tolist() for name in ("engine", "wait", "issue"))
    for record, (engine, wait, instructions) in enumerate(zip(*records)):
        issuing += by_hand.instruction * instructions
        if engine == _HOST:
            issuing = max(issuing, *free)
            ends.append(issuing)
            continue
        issuing += by_hand.issue
        start = max(issuing, free[engine], ends[record - wait] if wait else 0.0)
        free[engine] = start + next(taken[engine])
        ends.append(free[engine])
    return max(issuing, *free)


def restored(differences: Bytes) -> Bytes:
    """Commands (n, 128) of an array of `_tiu` or `_gdma`."""
    return np.cumsum(differences.T, axis=0, dtype=np.uint8)
