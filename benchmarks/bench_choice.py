"""CPU seconds and memory of int8 compilations with the choice of modes, and who takes them: [NETS...] [--chip C...]

    OPENBLAS_NUM_THREADS=1 python benchmarks/bench_choice.py

Each compilation runs in a process of its own. Its stacks are looked at every 4 ms of CPU time, and a look counts for
the first of `SHARES` that it shows a file of: an op that is evaluated while a layer is weighed is the interpreter's.
The nets: ResNet-50 of models/light.py, a chain of 2,000 layers, one in the form of YOLOv8n with seeded
weights, and two convolutions on a picture of 1080 rows.
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import bench_scale
import numpy as np

import bmcompiler
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder

MODELS = Path(__file__).parents[1] / "models/third_party"
SHARES = {
    "simulator": ("runtime/simulator/",),
    "interpreter": ("bmcompiler/interpreter.py",),
    "planner": (
        "analysis/",
        "codegen/",
        "passes/layout/",
        "passes/schedule/",
        "choice/cost.py",
        "choice/programs.py",
        "bmcompiler/target.py",
        "lanes/target.py",
    ),
    "integers": ("passes/quantization/nets.py", "passes/quantization/rounding.py"),
    "statistics": ("bmcompiler/quant/", "passes/precision/", "passes/quantization/", "bmcompiler/accuracy/"),
}
"""Files by who takes the time, in order: where a stack has files of several, the first of them does."""
_EVERY = 0.004


class Detector:
    """A net in the form of YOLOv8n: stages of split and joined bottlenecks, two ways through three maps, six heads."""

    def __init__(self) -> None:
        self.b, self.count = Builder.new("detector"), 0

    def at(self) -> Any:
        """The next layer."""
        self.count += 1
        return self.b.at(f"layer{self.count}")

    def conv(self, x: Value, outputs: int, kernel: int = 1, stride: int = 1, *, act: bool = True) -> Value:
        """A convolution with SiLU."""
        with self.at():
            random, inputs = np.random.default_rng(self.count), x.shape[1]
            gain = (2.5 / (inputs * kernel**2)) ** 0.5
            weight = (random.standard_normal((outputs, inputs, kernel, kernel)) * gain).astype(np.float32)
            bias = random.normal(0, 0.1, outputs).astype(np.float32)
            w, b = self.b.weight(weight, f"w{self.count}"), self.b.weight(bias, f"b{self.count}")
            y = self.b.conv(x, w, b, pads=(kernel // 2,) * 4, strides=(stride, stride))
        if not act:
            return y
        with self.at():
            return self.b.mul(y, self.b.sigmoid(y))

    def stage(self, x: Value, outputs: int, depth: int, *, shortcut: bool = False) -> Value:
        """Two halves, of which one goes through bottlenecks; all results are joined."""
        half, whole = outputs // 2, self.conv(x, outputs)
        n, _, h, w = whole.shape
        parts = []
        for low in (0, half):
            with self.at():
                parts.append(self.b.slice(whole, starts=(0, low, 0, 0), ends=(n, low + half, h, w), steps=(1,) * 4))
        for _ in range(depth):
            y = self.conv(self.conv(parts[-1], half, 3), half, 3)
            with self.at():
                parts.append(self.b.add(parts[-1], y) if shortcut else y)
        return self.conv(self.joined(*parts), outputs)

    def joined(self, *parts: Value) -> Value:
        """Along channels."""
        with self.at():
            return self.b.concat(*parts, axis=1)

    def larger(self, x: Value) -> Value:
        """Twice as many rows and columns."""
        with self.at():
            return self.b.upsample(x, scale=(2, 2))

    def module(self, size: int = 320, classes: int = 80) -> Module:
        """The net."""
        x = self.b.input("data", TensorType((1, 3, size, size)))
        y = self.stage(self.conv(self.conv(x, 16, 3, 2), 32, 3, 2), 32, 1, shortcut=True)
        third = self.stage(self.conv(y, 64, 3, 2), 64, 2, shortcut=True)
        fourth = self.stage(self.conv(third, 128, 3, 2), 128, 2, shortcut=True)
        pooled = [self.conv(self.stage(self.conv(fourth, 256, 3, 2), 256, 1, shortcut=True), 128)]
        for _ in range(3):
            with self.at():
                pooled.append(self.b.max_pool(pooled[-1], kernel=(5, 5), strides=(1, 1), pads=(2, 2, 2, 2)))
        fifth = self.conv(self.joined(*pooled), 256)
        up = self.stage(self.joined(self.larger(fifth), fourth), 128, 1)
        first = self.stage(self.joined(self.larger(up), third), 64, 1)
        second = self.stage(self.joined(self.conv(first, 64, 3, 2), up), 128, 1)
        last = self.stage(self.joined(self.conv(second, 128, 3, 2), fifth), 256, 1)
        outputs = []
        for y in (first, second, last):
            outputs.append(self.conv(self.conv(self.conv(y, 64, 3), 64, 3), 64, act=False))
            scores = self.conv(self.conv(self.conv(y, 80, 3), 80, 3), classes, act=False)
            with self.at():
                outputs.append(self.b.sigmoid(scores))
        return self.b.outputs(outputs, [f"{kind}{level}" for level in (3, 4, 5) for kind in ("boxes", "scores")])


def picture(rows: int = 1080, columns: int = 1920) -> Module:
    """Two convolutions whose results do not fit any memory but the largest."""
    b, random = Builder.new("picture"), np.random.default_rng(0)
    x = b.input("data", TensorType((1, 3, rows, columns)))
    for number, channels in enumerate((3, 16)):
        gain = (2 / channels / 9) ** 0.5
        weight = (random.standard_normal((16, channels, 3, 3)) * gain).astype(np.float32)
        with b.at(f"conv{number}"):
            x = b.relu(b.conv(x, b.weight(weight, f"w{number}"), pads=(1, 1, 1, 1)))
    return b.outputs([x], ["out"])


NETS: dict[str, tuple[int, Callable[[], Module | Path]]] = {
    "resnet50": (8, lambda: MODELS / "light_resnet50.onnx"),
    "chain": (4, lambda: bench_scale.net(2000, branchy=False)),
    "yolov8n-like": (32, lambda: Detector().module()),
    "1080p": (4, picture),
}
"""Samples, and the net."""


@contextmanager
def shared(counts: Counter[str]) -> Iterator[None]:
    """Count looks at what this process computes meanwhile."""

    def look(number: int, frame: FrameType | None) -> None:
        files = []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        found = (who for who, rooms in SHARES.items() if any(room in file for room in rooms for file in files))
        counts[next(found, "all else")] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def measured(model: Module | Path, samples: int, chip: str) -> tuple[float, Counter[str], bmcompiler.Result]:
    """CPU seconds of one compilation, the looks by who computed, and what was compiled."""
    counts, start = Counter[str](), time.process_time()
    with shared(counts):
        if isinstance(model, Path):
            data = np.random.default_rng(0).standard_normal((samples, 3, 224, 224)).astype(np.float32)
            result = bmcompiler.compile(model, target=chip, quantize="int8", data=data)
        else:
            shape = model.main.arguments[0].shape
            inputs = np.random.default_rng(0).uniform(-1, 1, (samples, *shape[1:])).astype(np.float32)
            result = bmcompiler.compile_module(model, target=chip, quantize="int8", data={"data": inputs})
    return time.process_time() - start, counts, result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("nets", nargs="*", default=list(NETS), help=", ".join(NETS))
    parser.add_argument("--chip", nargs="+", default=("bm1684", "bm1880"))
    parser.add_argument("--notes", action="store_true", help="what the compilation says")
    given = parser.parse_args()
    if (len(given.nets), len(given.chip)) != (1, 1):
        who = "".join(f"{name:>13}" for name in (*SHARES, "all else"))
        print(f"{'net':14}{'chip':9}{'CPU s':>7}{'peak MB':>9}{who}", flush=True)
        more = ["--notes"] * given.notes
        for name in given.nets:
            for chip in given.chip:
                subprocess.run([sys.executable, __file__, name, "--chip", chip, *more], check=True)
        return
    ((name,), (chip,)) = given.nets, given.chip
    samples, make = NETS[name]
    seconds, counts, result = measured(make(), samples, chip)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    parts = "".join(f"{counts[who] / max(counts.total(), 1):13.0%}" for who in (*SHARES, "all else"))
    print(f"{name:14}{chip:9}{seconds:7.1f}{peak:9}{parts}", flush=True)
    for note in result.notes if given.notes else ():
        print(f"    {note}")


if __name__ == "__main__":
    main()
