"""Where int8 loses accuracy: python benchmarks/quant_error.py MODEL [WEIGHTS] --data DATA.npz [--shapes S] [--method M]

Runs the float network and its int8 form side by side on the samples, op by op in the interpreter, and prints one row
per source tensor in network order: signal to quantization noise ratio (dB, over all samples; low is bad), how much it
fell against the worst operand (a large fall marks the op to look at), threshold, largest magnitude, the share of values
that saturate, and the share of int8 codes in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bmcompiler.driver import load_network, parse_shapes
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Value
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.numeric import arith
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

Floats = NDArray[np.float32]


@dataclass
class Row:
    """Sums over samples for one tensor; magnitudes in real units."""

    name: str
    kind: str
    reads: tuple[str, ...]
    threshold: float
    signal: float = 0.0
    noise: float = 0.0
    peak: float = 0.0
    saturated: float = 0.0
    codes: set[int] | None = None
    samples: int = 0

    @property
    def sqnr(self) -> float:
        return 10 * float(np.log10(max(self.signal, 1e-30) / max(self.noise, 1e-30)))

    def add(self, real: Floats, found: NDArray[np.generic]) -> None:
        restored = arith.dequantize(found, self.threshold) if found.dtype == np.int8 else found.astype(np.float32)
        self.signal += float(np.square(real, dtype=np.float64).sum())
        self.noise += float(np.square(restored - real, dtype=np.float64).sum())
        self.peak = max(self.peak, float(np.abs(real).max(initial=0.0)))
        self.samples += 1
        if found.dtype == np.int8:
            self.saturated += float(np.mean((found == 127) | (found == -128)))
            self.codes = (self.codes or set()) | set(np.unique(found).tolist())

    def text(self, rows: Mapping[str, Row]) -> str:
        before = [rows[name].sqnr for name in self.reads if name in rows]
        fall = f"{min(before) - self.sqnr:6.1f}" if before else "      "
        codes = f"{len(self.codes) / 256:6.1%}" if self.codes is not None else " float"
        facts = f"{self.sqnr:7.1f} {fall} {self.threshold:10.4g} {self.peak:10.4g} {self.saturated / self.samples:6.2%}"
        return f"{facts} {codes}  {self.kind:12} {self.name}"


def names(function: Function) -> dict[str, Value]:
    """Source tensor name -> the value that holds it."""
    found = dict(zip(function.input_names, function.arguments))
    for op in function.ops[:-1]:
        sources = op.attributes.get(TENSOR_NAME, ())
        for result, name in zip(op.results, (sources,) if isinstance(sources, str) else sources):
            found[name] = result
    return found


def pair(
    model: Path, weights: Path | None, data: Mapping[str, Floats], shapes: list[list[int]] | None, method: str
) -> tuple[Module, Module]:
    """The calibrated float module and the quantized one."""
    target = find_target("bm1880")
    passes = target.pipeline("int8", 2).split(",")
    before = passes[: passes.index("calibrate")]
    ctx = PassContext(target=target, data=data)
    modules = [load_network(model, weights, shapes=shapes) for _ in range(2)]
    for module in modules:
        run_pipeline(module, ",".join([*before, f"calibrate{{method={method}}}"]), ctx)
    run_pipeline(modules[1], "quantize,dead-code", ctx)
    return modules[0], modules[1]


def compare(real: Module, quantized: Module, data: Mapping[str, Floats], samples: int) -> dict[str, Row]:
    """Rows by source tensor, in network order."""
    originals, copies = names(real.main), names(quantized.main)
    rows = {}
    for name, value in originals.items():
        if name not in copies or not value.type.is_float:
            continue
        producer, quant = value.op, copies[name].type.quant
        reads = () if producer is None else tuple(n for n, v in originals.items() if v in producer.operands)
        kind = "input" if producer is None else producer.short_name
        rows[name] = Row(name, kind, reads, quant.threshold if quant is not None else 0.0)
    for index in range(samples):
        fed: dict[str, NDArray[np.generic]] = {}
        device: dict[str, NDArray[np.generic]] = {}
        for name, old, new in zip(real.main.input_names, real.main.arguments, quantized.main.arguments):
            count = old.shape[0]
            fed[name] = data[name][index * count : (index + 1) * count]
            quant = new.type.quant
            device[name] = fed[name] if quant is None else arith.quantize_real(fed[name], quant.threshold)
        seen: dict[Value, NDArray[np.generic]] = {}
        run_function(real, real.main, fed, seen.__setitem__)
        found: dict[Value, NDArray[np.generic]] = {}
        run_function(quantized, quantized.main, device, found.__setitem__)
        for name, row in rows.items():
            row.add(np.asarray(seen[originals[name]], np.float32), found[copies[name]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Signal to quantization noise of every tensor of a network in int8.")
    parser.add_argument("model", type=Path)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--data", required=True, help="npz file, samples on axis 0")
    parser.add_argument("--shapes", help="as for bmnet-compile")
    parser.add_argument("--method", default="kl")
    parser.add_argument("--samples", type=int, default=4, help="how many to compare (all of them calibrate)")
    given = parser.parse_args()
    shapes = None if given.shapes is None else parse_shapes(given.shapes)
    with np.load(given.data) as file:
        data = {name: file[name].astype(np.float32) for name in file.files}
    real, quantized = pair(given.model, given.weights, data, shapes, given.method)
    rows = compare(real, quantized, data, given.samples)
    print("     dB   fall  threshold    largest  satur.  codes  op           tensor")
    for row in rows.values():
        print(row.text(rows))


if __name__ == "__main__":
    main()
