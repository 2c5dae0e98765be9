"""What the levels of --opt save, as a table: python benchmarks/bench_groups.py [NETS...] [--chip C] [--precision P] ...

    python benchmarks/bench_groups.py light_resnet50 mobilenetv2_160 --precision f32 int8 --level 0 1 2 --simulate

A row is one net, chip, precision, batch and level: estimated cycles and their ratio to the roofline bound (multipliers
at full rate for the net's own products, or compulsory bytes at full bandwidth), to what the busier engine works (what
these commands take if nothing waits) and to level 0; bytes over the bus in weights, net inputs and outputs, and spill
(results stored and read again), and all of them over the compulsory ones (coefficients, inputs and outputs at the size
of their elements); commands; neuron memory over its lower bound; conflicts the race check finds;
seconds to compile from tables and to run one batch in the simulator. `--layers N` lists the layers that spill most and
those that take longest.

int8 is calibrated with eight samples of seeded noise; the tables are kept in `--tables`, so that the second run is
quick. Networks come from `make models`; layers of transformers and Swin-T are written on first use.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import bmcompiler
from bmcompiler.analysis.profile import Timing, find_analyzer
from bmcompiler.analysis.timing_profile import profile_for
from bmcompiler.codegen.memory import root_of
from bmcompiler.ir.keys import is_weight
from bmcompiler.runtime import Session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from noise import noise
from transformers import LONG, transformer

SCRIPTS = Path(sysconfig.get_path("scripts"))
MODELS = Path(__file__).resolve().parent.parent / "models"
THIRD_PARTY = MODELS / "third_party"
SHAPES = {k: tuple(v) for k, v in json.loads((MODELS / "shapes.json").read_text(encoding="utf-8")).items()}
SHAPES["centerface_resize_480"] = SHAPES["centerface_480"]
"""One sample of the input of every network."""
USUAL = ("light_resnet50", "mobilenetv2_160", "ppocr_v4_det", "centerface_480")
PRECISIONS = {"bm1684": ("f32", "int8"), "bm1684x": ("f32", "f16", "bf16", "int8"), "bm1880": ("int8",)}
SAMPLES = 8
# Bytes over the bus in a cycle of the arithmetic engine: defaults of the chips' timing profiles.
BYTES_PER_CYCLE = {"bm1684": 27.2e9 / 550e6, "bm1684x": 54.04, "bm1880": 8.0}
MB = 1e6


@dataclass
class Case:
    """One row to be made."""

    net: str
    chip: str
    precision: str
    batch: int
    level: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.batch, *SHAPES[self.net]

    def samples(self, count: int) -> np.ndarray:
        return noise(self.net, (count, *SHAPES[self.net]))


@dataclass
class Measured:
    """What is known of a case; bytes, cycles, seconds."""

    case: Case
    result: bmcompiler.Result
    timing: Timing
    races: int
    compile_seconds: float
    simulator_seconds: float | None

    @property
    def moved(self) -> int:
        return self.timing.weights + self.timing.loaded + self.timing.stored

    @property
    def borders(self) -> int:
        """Bytes of the net's inputs and outputs."""
        stage = self.result.model.stages()[0]
        return sum(tensor.size for tensor in (*stage.inputs, *stage.outputs))

    @property
    def compulsory(self) -> int:
        return self.coefficients + self.borders

    @property
    def coefficients(self) -> int:
        """Bytes of the constants that the ops of the net read, each once, as elements of their types."""
        found = {root_of(value) for op in self.result.module.main.ops for value in op.operands}
        return sum(value.type.nbytes for value in found if is_weight(value))

    @property
    def bound(self) -> float:
        """Cycles of the net's own multiply-accumulates at full rate, or of its compulsory bytes.

        Commands may multiply more, zeros or rows of two tiles, and less, by Winograd's algorithm.
        """
        needed = sum(row.macs for row in self.result.rows)
        full_rate = self.timing.utilization * self.timing.cycles * needed / max(1, self.timing.macs)
        return max(full_rate, self.compulsory / BYTES_PER_CYCLE[self.case.chip])


def measure(case: Case, tables: Path, simulate: bool, settings: Sequence[str] = ()) -> Measured:
    """Compile, analyse, and run if wanted; `settings` of the timing profile that plans and cycles are made by."""
    profile = profile_for(case.chip, settings)
    options: dict[str, Any] = {"target": case.chip, "quantize": case.precision, "shapes": [list(case.shape)]}
    options["timing_profile"] = profile
    if case.precision == "int8":
        options |= prepared(case, tables)
    model = THIRD_PARTY / f"{case.net}.onnx"
    start = time.perf_counter()
    result = bmcompiler.compile(model, opt=case.level, **options)
    seconds = time.perf_counter() - start
    analyze = find_analyzer(case.chip)
    assert analyze is not None
    analysis = analyze(result.model, 0, **({} if profile is None else {"profile": profile}))
    return Measured(
        case,
        result,
        analysis.timing(),
        len(analysis.races()),
        seconds,
        simulator_time(case, result) if simulate else None,
    )


def prepared(case: Case, tables: Path) -> dict[str, Any]:
    """Options that name the thresholds and modes found at batch 1, in files that are written on first use."""
    tables.mkdir(parents=True, exist_ok=True)
    table, modes = (tables / f"{case.net}.{case.chip}.{kind}" for kind in ("table", "modes"))
    chosen = {"quant_table": modes} if case.chip.startswith("bm1684") else {}
    if not table.exists():
        print(f"calibrating {case.net} for {case.chip}", file=sys.stderr, flush=True)
        model, shape = THIRD_PARTY / f"{case.net}.onnx", [[1, *SHAPES[case.net]]]
        (source,) = bmcompiler.load_network(model, shapes=shape).main.input_names
        data = {source: case.samples(SAMPLES)}
        bmcompiler.compile(model, target=case.chip, quantize="int8", shapes=shape, data=data, **chosen)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(file := Path(folder) / "data.npz", **data)
            arguments = ("--data", file, "--shapes", str(shape), "-o", table)
            subprocess.run([SCRIPTS / "bmnet-calibrate", model, *arguments], check=True, capture_output=True)
    return {"table": table, **chosen}


def simulator_time(case: Case, result: bmcompiler.Result) -> float:
    """Seconds of the second run of one batch: the first decodes the program."""
    session = Session(result.model)
    inputs = {session.inputs[0].name: case.samples(case.batch)}
    session.run(inputs)
    start = time.perf_counter()
    session.run(inputs)
    return time.perf_counter() - start


HEADINGS = (
    *("net", "chip", "precision", "batch", "opt", "Mcycles", "of level 0", "x roofline", "x busier", "TIU busy"),
    *("MB weights", "MB in/out", "MB spill", "x compulsory", "commands", "neuron MB", "x lower bound", "races"),
    *("compile s", "simulator s"),
)


def row(one: Measured, plain: Measured | None) -> list[str]:
    case, timing, totals = one.case, one.timing, one.result.totals
    bound = totals["neuron lower bound"]
    spill = timing.loaded + timing.stored - one.borders
    return [
        *(case.net, case.chip, case.precision, str(case.batch), str(case.level)),
        f"{timing.cycles / 1e6:.3f}",
        f"{plain.timing.cycles / timing.cycles:.2f}x" if plain else "",
        f"{timing.cycles / one.bound:.2f}",
        f"{timing.cycles / max(engine.busy for engine in timing.engines):.2f}",
        f"{timing.engines[0].busy / timing.cycles:.0%}",
        *(f"{amount / MB:.2f}" for amount in (timing.weights, one.borders, spill)),
        f"{one.moved / one.compulsory:.3f}",
        str(sum(engine.commands for engine in timing.engines)),
        f"{totals['neuron memory'] / MB:.2f}",
        f"{totals['neuron memory'] / bound:.2f}" if bound else "",
        str(one.races),
        f"{one.compile_seconds:.1f}",
        "" if one.simulator_seconds is None else f"{one.simulator_seconds:.2f}",
    ]


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def layer_lines(one: Measured, count: int) -> Iterator[str]:
    """The layers that move most feature bytes, and those that take most cycles."""
    layers = one.timing.layers
    moved = sorted(layers, key=lambda x: -(x.loaded + x.stored - x.weights))
    slow = sorted(layers, key=lambda x: -x.cycles)
    for title, chosen in (("most feature bytes", moved), ("most cycles", slow)):
        yield f"\n{title}: kB in, kB weights, kB out, cycles, TIU cycles, GDMA cycles, utilization"
        for x in chosen[:count]:
            amounts = (x.loaded - x.weights, x.weights, x.stored)
            sizes = " ".join(f"{amount / 1e3:9.1f}" for amount in amounts)
            cycles = f"{x.cycles:9} {x.compute:9} {x.transfer:9} {x.utilization:5.0%}"
            yield f"  {sizes} {cycles}  {x.kind:12} {x.name[:60]}"


def cases(given: argparse.Namespace) -> Iterator[Case]:
    for net in given.nets:
        for chip in given.chip:
            for precision in PRECISIONS[chip]:
                if precision in given.precision:
                    yield from (Case(net, chip, precision, b, o) for b in given.batch for o in given.level)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cycles, bytes and commands by net, chip, precision, batch, --opt.")
    parser.add_argument("nets", nargs="*", default=USUAL, metavar="NET", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--chip", nargs="+", default=["bm1684"], choices=PRECISIONS)
    parser.add_argument("--precision", nargs="+", default=["f32", "int8"], choices=["f32", "f16", "bf16", "int8"])
    parser.add_argument("--batch", nargs="+", type=int, default=[1])
    parser.add_argument("--level", nargs="+", type=int, default=[0, 1, 2], choices=[0, 1, 2], help="of --opt")
    parser.add_argument("--simulate", action="store_true", help="also run one batch in the simulator")
    parser.add_argument("--layers", type=int, default=0, metavar="N", help="list the N worst layers of each case")
    parser.add_argument("--tables", type=Path, default=THIRD_PARTY / "tables", help="folder of calibration tables")
    parser.add_argument("--timing-profile", nargs="+", default=(), metavar="NAME|FILE|K=V", help="as of bmnet-compile")
    given = parser.parse_args()
    unknown = [net for net in given.nets if net not in SHAPES]
    if unknown:
        parser.error(f"no network is called '{unknown[0]}'; known: {', '.join(SHAPES)}")
    print(line(HEADINGS), line("---" for _ in HEADINGS), sep="\n")
    plain: Measured | None = None
    for case in cases(given):
        if case.net in LONG:
            transformer(case.net)
        if not (THIRD_PARTY / f"{case.net}.onnx").exists():
            print(f"{case.net}: not there (make models)")
            continue
        one = measure(case, given.tables, given.simulate, given.timing_profile)
        if plain is None or replace(plain.case, level=case.level) != case:
            plain = one if case.level == 0 else None
        print(line(row(one, plain)), flush=True)
        for text in layer_lines(one, given.layers) if given.layers else ():
            print(text)


if __name__ == "__main__":
    main()
