"""Accuracy against float32 by task: python benchmarks/accuracy.py [CHIP...] [--nets NAME...]

Each network is compiled with its calibration samples and runs the samples of its task in the simulator. A row shows the
scores (0 to 100) of float32 and of static int8 with scales per channel (both ONNX Runtime; float32 of Caffe files
OpenCV), then of our program, how far its outputs are from float32 there (the largest relative error among them), its
estimated cycles, on the BM1684 how many times those of the program with all layers in low mode and of the f32 program
that is, and the CPU time of compilation.

In int8 on the BM1880, BM1684 and BM1684X, on the DV700 in fp16 and with weights of 8 bits. Third-party networks must
be fetched first (`make models`); tasks need scikit-image, matplotlib and opencv-python-headless.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tasks_of_networks import Network, Run, calibration, networks, reference

import bmcompiler
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.runtime.session import Session
from bmcompiler.target import find_target

TARGETS = {"bm1880": ("int8",), "bm1684": ("int8",), "bm1684x": ("int8",), "dv700": ("f16", "int8")}
"""Precisions that are measured."""
LOW = find_target("bm1684").pipeline("int8", 2).replace("{scheme=scale}", "{scheme=scale,mode=low}")
"""All layers in the cheapest mode."""
Array = NDArray[Any]


class Errors:
    """Sums over samples of the energies of outputs and of what is wrong in them."""

    def __init__(self, exact: Callable[[Array], list[Array]]) -> None:
        self.exact = exact
        self.noise: dict[int, float] = {}
        self.signal: dict[int, float] = {}

    def watch(self, run: Run) -> Run:
        """`run`, its outputs compared on the way."""

        def watched(x: Array) -> list[Array]:
            found = [np.asarray(array) for array in run(x)]
            for k, (got, wanted) in enumerate(zip(found, self.exact(x))):
                if got.shape == wanted.shape and wanted.dtype.kind == "f":
                    self.noise[k] = self.noise.get(k, 0.0) + float(np.square(got - wanted, dtype=np.float64).sum())
                    self.signal[k] = self.signal.get(k, 0.0) + float(np.square(wanted, dtype=np.float64).sum())
            return found

        return watched

    @property
    def worst(self) -> float:
        return max((float(np.sqrt(self.noise[k] / max(self.signal[k], 1e-30))) for k in self.noise), default=0.0)


def exact(net: Network) -> Callable[[Array], list[Array]]:
    """Outputs of the network as imported, in float32; each sample is computed once."""
    module = bmcompiler.load_network(*net.files, shapes=[net.shape])
    known: dict[bytes, list[Array]] = {}

    def run(x: Array) -> list[Array]:
        key = x.tobytes()
        if key not in known:
            known[key] = list(run_module(module, {module.main.input_names[0]: x}).values())
        return known[key]

    return run


def cycles(model: Any, target: str) -> int:
    return int(find_analyzer(target)(model, 0).timing().cycles)


def measure(net: Network, target: str, precision: str, given: argparse.Namespace, base: Callable[[Array], Any]) -> str:
    """The columns of one program."""
    options: dict[str, Any] = {"target": target, "shapes": [net.shape]}
    extra: dict[str, Any] = {}
    if precision == "int8" and target != "dv700":
        extra = {"data": calibration(net, given.samples), "method": given.method}
    start = time.process_time()
    result = bmcompiler.compile(*net.files, quantize=precision, **options, **{k: v for k, v in extra.items() if v})
    seconds = time.process_time() - start
    session, errors = Session(result.model), Errors(base)
    names = session.inputs[0].name
    score = net.metric(errors.watch(lambda x: list(session.run({names: x}).values())))
    taken = cycles(result.model, target)
    text = f"{score * 100:6.1f} {errors.worst:7.2%} {taken:12,}"
    if target == "bm1684":
        whole = cycles(bmcompiler.compile(*net.files, quantize="f32", **options).model, target)
        least = cycles(bmcompiler.compile(*net.files, quantize="int8", pipeline=LOW, **options, **extra).model, target)
        text += f" {taken / least:5.2f} {taken / whole:5.2f}"
    return text + f" {seconds:6.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*TARGETS, []], metavar="CHIP", help="default: all")
    parser.add_argument("--nets", nargs="+", help="default: all that have been fetched")
    parser.add_argument("--samples", type=int, default=32, help="for calibration, %(default)s")
    parser.add_argument("--method", help="calibration method; default: the target's own")
    given = parser.parse_args()
    known = networks()
    print(f"{'network':16}{'float':>6}{'ORT8':>6}  program")
    for name in given.nets or known:
        net = known[name]
        if not net.there:
            print(f"{name:16} not fetched (make models)")
            continue
        scores = reference(net, given.samples)
        shown = "".join("     -" if v is None else f"{v * 100:6.1f}" for v in (scores["float"], scores["int8"]))
        base = exact(net)
        for target in given.chips or TARGETS:
            for precision in TARGETS[target]:
                try:
                    text = measure(net, target, precision, given, base)
                except BMError as error:
                    text = str(error)
                print(f"{name:16}{shown}  {target} {precision}: {text}", flush=True)


if __name__ == "__main__":
    main()
