"""Graphs of the slow kinds beside their roofline bounds: python benchmarks/bench_cliffs.py [WORDS...] [--on CHIP:P ...]

    python benchmarks/bench_cliffs.py permute heads --on bm1684x:f16

A row is a graph of `tests/cliff_graphs.py` on one chip in one precision: estimated cycles, the roofline bound of the
graph (its own products at full rate, or weights, input and output at full bandwidth), their ratio, and the layer that
takes most. Worst first. WORDS: only graphs whose names have one of them. Nothing is simulated.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import bmcompiler
from bmcompiler.analysis.estimate import estimate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from cliff_graphs import GRAPHS, module_of

USUAL = ("bm1684:f32", "bm1684x:f32", "bm1684x:f16")
EDGE = 8
"""Times the bound, beyond which a graph falls off a cliff."""


def row(name: str, chip: str, precision: str) -> tuple[float, str]:
    """(ratio, the row as text) of a graph."""
    graph, begin = GRAPHS[name], time.process_time()
    result = bmcompiler.compile_module(module_of(graph.make, graph.large), target=chip, quantize=precision)
    timing = estimate(result)
    if timing is None or not timing.bound:
        return 0.0, f"{name:34} {chip:8}{precision:5} no estimate"
    worst = max(timing.layers, key=lambda layer: max(layer.cycles, layer.compute, layer.transfer))
    layer = f"{worst.kind} {worst.compute:,} / {worst.transfer:,}"
    host = f", {timing.cpu_records} on the host" if timing.cpu_records else ""
    ratio = float("inf") if timing.cpu_records else timing.ratio
    cells = f"{timing.cycles:11,} {timing.bound:11,.0f} {timing.ratio:7.1f}  {layer}{host}"
    return ratio, f"{name:34} {chip:8}{precision:5}{cells}  ({time.process_time() - begin:.1f} s)"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--on", nargs="+", default=USUAL, metavar="CHIP:PRECISION")
    arguments = parser.parse_args()
    names = [name for name in GRAPHS if not arguments.words or any(word in name for word in arguments.words)]
    rows = [row(name, *place.split(":")) for name in names for place in arguments.on]
    print(f"{'graph':34} {'chip':13}{'cycles':>11} {'bound':>11} {'ratio':>7}  slowest layer: compute / transfer")
    for _, text in sorted(rows, key=lambda found: -found[0]):
        print(text)
    over = sum(ratio > EDGE for ratio, _ in rows)
    print(f"{over} of {len(rows)} over {EDGE} times the bound")


if __name__ == "__main__":
    main()
