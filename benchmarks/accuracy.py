"""Accuracy against float32 by task: python benchmarks/accuracy.py [CHIP...] [--nets NAME...] [--write]

Each network is compiled with its calibration samples and runs the samples of its task in the simulator. A row shows the
scores (0 to 100) of float32 and of static int8 with scales per channel (both ONNX Runtime; float32 of Caffe files as
imported), then of our program, how far its outputs are from float32 there (the largest relative error among them), its
estimated cycles, on the BM1684 how many times those of the f32 program and of the program with all layers in low mode
that is, and the CPU time of compilation.

In int8 on the BM1880, BM1684 and BM1684X, on the DV700 in fp16 and with weights of 8 bits. With --write the scores of
int8 go into the table of docs/accuracy.md, a row per network. Needs `make models` and `pip install .[tasks]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tasks import reference, table
from tasks.measure import compiled, cycle_ratios
from tasks.networks import NETWORKS, Network, Run

from bmcompiler.errors import BMError

TARGETS = {"bm1880": ("int8",), "bm1684": ("int8",), "bm1684x": ("int8",), "dv700": ("f16", "int8")}
"""Precisions that are measured."""
Array = NDArray[Any]


class Errors:
    """Sums over samples of the energies of outputs and of what is wrong in them."""

    def __init__(self, exact: Callable[[Array], Any]) -> None:
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


def show(net: Network, given: argparse.Namespace, scores: str) -> None:
    """A line for each program."""
    base = reference.imported(net)
    for target in given.chips or TARGETS:
        for precision in TARGETS[target]:
            options = {"method": given.method} if given.method and precision == "int8" and target != "dv700" else {}
            try:
                program, errors = compiled(net, target, precision, given.samples, **options), Errors(base)
                score = net.metric(errors.watch(program.run))
                text = f"{score * 100:6.1f} {errors.worst:7.2%} {program.cycles:12,}"
                if target == "bm1684":
                    text += " {:5.2f} {:5.2f}".format(*cycle_ratios(net, program, given.samples))
                text += f" {program.seconds:6.1f} s"
            except BMError as error:
                text = str(error)
            print(f"{net.name:16}{scores}  {target} {precision}: {text}", flush=True)


def write(net: Network, float32: float, elsewhere: float | None) -> None:
    """The row of the page, and sentences on scores that are too low."""
    programs = {chip: compiled(net, chip) for chip in table.CHIPS}
    scores = {chip: net.metric(program.run) * 100 for chip, program in programs.items()}
    row = table.Row(float32, elsewhere, scores, cycle_ratios(net, programs["bm1684"]))
    table.write({net.name: row})
    print(table.text(net.name, row), flush=True)
    for chip in table.CHIPS:
        for sentence in table.complaints(net.name, chip, scores[chip], float32, scores[chip]):
            print(sentence, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*TARGETS, []], metavar="CHIP", help="default: all")
    parser.add_argument("--nets", nargs="+", choices=NETWORKS, metavar="NAME", help="default: all")
    parser.add_argument("--samples", type=int, default=32, help="for calibration, %(default)s")
    parser.add_argument("--method", help="calibration method; default: the target's own")
    parser.add_argument("--write", action="store_true", help="the table of docs/accuracy.md, with default options")
    given = parser.parse_args()
    if given.write and (given.chips or given.method or given.samples != 32):
        parser.error("--write measures all chips of the table with default options")
    if not given.write:
        print(f"{'network':16}{'float':>6}{'ORT8':>6}  program")
    for name in given.nets or NETWORKS:
        net = NETWORKS[name]
        if not net.there:
            raise SystemExit(f"{name} is not fetched: run `make models`")
        float32 = net.metric(reference.float32(net)) * 100
        run = reference.int8(net, given.samples)
        elsewhere = None if run is None else net.metric(run) * 100
        if given.write:
            write(net, float32, elsewhere)
        else:
            show(net, given, f"{float32:6.1f}" + ("     -" if elsewhere is None else f"{elsewhere:6.1f}"))


if __name__ == "__main__":
    main()
