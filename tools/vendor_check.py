"""BM1684 and BM1684X against the vendor's tools, bit for bit, in both directions.

    python tools/vendor_check.py ours VENV [NETWORK...] [--target bm1684|bm1684x] [--precision f32 f16 int8] [--batch N]
                                 [--opt 0|1|2] [--io-dtype float|int8] [--pipeline TEXT] [--outputs a,b] [--keep DIR]
                                 [--board]
        compiles networks with this project (those of tools/vendor/networks.py, or the small ones below); the vendor's
        model_tool and bmodel_dis must accept the file, and its runtime on its C model must give the results of our
        Session. Layers on the host CPU cannot run there. `--board` runs the file by `bmnet-run --device board:0`, which
        opens the vendor's libraries, in place of the vendor's own tool.

    python tools/vendor_check.py theirs VENV [NET...] [--precision f32 int8] [--record DIR] [--keep DIR]
        compiles the small networks of tools/vendor/small_nets.py with the vendor's compiler; our simulator must give
        the results of its runtime. `--record` writes what tests/bm1684/test_vendor_models.py reads.

    python tools/vendor_check.py bmlang VENV [PROGRAM...] [--target bm1684|bm1684x] [--opt 0|1|2] [--keep DIR]
        compiles BMLang programs (tools/vendor/bmlang_programs.py): every operator that the chip has in all its element
        types (of the BM1684X those with floats of 16 bits), and programs of many operators in all modes of
        quantization; judged as "ours" is.

    python tools/vendor_check.py bm1684x VENV [FILE...] [--keep DIR]
        files for the BM1684X (tools/vendor/bm1684x_files.py): a kernel, and recorded programs of the vendor's compiler
        in files of ours; judged as "ours" is.

    python tools/vendor_check.py time VENV [NETWORK...] [--target bm1684|bm1684x] [--precision P...] [--batch N]
                                 [--keep DIR]
        compiles networks with both compilers and times both programs with our timing model: cycles, bytes, results
        stored and read again (spill), commands; theirs, ours, ours / theirs. Models in DIR are used again.

tools/vendor/commands.py says how VENV is made; the tests do not need it. Exit code 1 when a file was refused or a
result differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import onnx
from vendor import bm1684x_files, bmlang_programs
from vendor.commands import Vendor, VendorError
from vendor.networks import DEFAULT, NETWORKS, compile_network, compile_small
from vendor.small_nets import NETS, Graph
from vendor.times import SHAPES, TIMED, compared, ours, ranges, theirs

from bmcompiler import bmodel
from bmcompiler.bmodel.bm168x_streams import count
from bmcompiler.errors import BMError
from bmcompiler.instructions.order import STREAMS
from bmcompiler.runtime import Session

_END_MARKS = {"bm1684": 0, "bm1684x": 2}
Results = Mapping[str, NDArray[np.float32]]


def main() -> int:
    arguments = _parser().parse_args()
    vendor = Vendor(arguments.venv)
    known, usual, judge = _DIRECTIONS[arguments.direction]
    names = arguments.names or usual
    for name in names:
        if name not in known:
            sys.exit(f"vendor_check: there is no '{name}'; known: {', '.join(known)}")
    good = total = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(arguments.keep or folder)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            for row in judge(vendor, name, place, arguments):
                verdict, precision = row[-1], row[0]
                print(f"{name:22} {precision:5}", *row[1:], sep="  ", flush=True)
                good, total = good + verdict.startswith(("identical", "cycles")), total + 1
    if judge is _time:
        return int(good < total)
    print(f"{good} of {total} identical")
    return int(good != total)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compare with the vendor's tools")
    directions = parser.add_subparsers(dest="direction", required=True)
    for direction, (_, usual, _) in _DIRECTIONS.items():
        sub = directions.add_parser(direction)
        sub.add_argument("venv", type=Path, help="virtual environment with tpu_mlir")
        sub.add_argument(
            "names", nargs="*", metavar="NAME", help="default: " + ("a few" if usual is DEFAULT else "all")
        )
        sub.add_argument("--keep", type=Path, help="folder for all files made on the way")
    for direction in ("ours", "theirs", "time"):
        halves = () if direction == "theirs" else ("f16", "bf16")
        options = {"nargs": "+", "choices": ("f32", *halves, "int8"), "default": ("f32", "int8")}
        directions.choices[direction].add_argument("--precision", **options)
    for direction in ("ours", "bmlang"):
        directions.choices[direction].add_argument("--opt", type=int, choices=(0, 1, 2), default=2)
    for direction in ("ours", "bmlang", "time"):
        directions.choices[direction].add_argument("--target", choices=("bm1684", "bm1684x"), default="bm1684")
    for direction in ("ours", "time"):
        directions.choices[direction].add_argument("--batch", type=int, default=1)
    directions.choices["ours"].add_argument("--io-dtype", choices=("float", "int8"), help="of int8 networks")
    directions.choices["ours"].add_argument("--board", action="store_true", help="by bmnet-run --device board:0")
    directions.choices["ours"].add_argument("--pipeline", help="passes in place of the target's, to force a mode")
    directions.choices["ours"].add_argument("--outputs", type=lambda text: text.split(","), help="cut the network")
    directions.choices["theirs"].add_argument("--record", type=Path, help="folder for test data")
    return parser


def _judge_ours(vendor: Vendor, name: str, folder: Path, arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    return [(precision, *_judge_our(vendor, name, precision, folder, arguments)) for precision in arguments.precision]


def _judge_our(
    vendor: Vendor, name: str, precision: str, folder: Path, arguments: argparse.Namespace
) -> tuple[str, ...]:
    """(commands, time, verdict) of one network of ours."""
    file = folder / f"{name}_{precision}_{arguments.batch}.bmodel"
    try:
        options = {name: getattr(arguments, name) for name in ("target", "outputs", "opt", "pipeline")}
        options |= {"io_dtype": arguments.io_dtype} if precision == "int8" else {}
        if name in NETWORKS:
            made = compile_network(name, precision, arguments.batch, **options)
        else:
            made = compile_small(name, precision, folder, **options)
        bmodel.save(made.model, file)
    except (BMError, OSError) as error:
        return (f"not compiled: {error}",)
    groups = [group for _, stage in made.model.all_stages() for group in stage.groups]
    commands = sum(count(made.model.chip, engine, group[engine]) for group in groups for engine in STREAMS)
    commands -= _END_MARKS[made.model.target] * len(groups)  # bmodel_dis leaves them out
    told = f"{commands:6} commands  {made.integers:4} integer tensors"
    try:
        vendor.info(file)
        found = vendor.disassemble(file)
        if made.on_cpu:
            return told, f"accepted ({found} commands), cannot run there: {', '.join(made.on_cpu)} on the CPU"
        if found != commands:
            return told, f"bmodel_dis finds {found}"
        start = perf_counter()
        board = arguments.board
        theirs = vendor.run_as_board(file, made.inputs, arguments.target) if board else vendor.run(file, made.inputs)
        told += f"  {perf_counter() - start:6.1f} s there"
        start = perf_counter()
        ours = Session(file).run(made.inputs)
        told += f"  {perf_counter() - start:5.1f} s here"
    except (BMError, VendorError) as error:
        return told, f"refused: {error}"
    return told, _difference(ours, theirs)


def _judge_bmlang(vendor: Vendor, name: str, folder: Path, arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    """(calls, time, verdict) of each program of a name."""
    rows = []
    chip = arguments.target.upper()
    for part, judged in enumerate(bmlang_programs.compile_program(name, folder / name, arguments.opt, chip)):
        told = f"part {part}: {judged.calls:3} calls  {len(judged.made.outputs):3} results"
        if judged.made.host:
            rows.append(("", told, f"cannot run there: {', '.join(row.kind for row in judged.made.host)} on the host"))
            continue
        try:
            vendor.info(judged.made.path)
            theirs = vendor.run(judged.made.path, {name: _known(array) for name, array in judged.inputs.items()})
        except VendorError as error:
            rows.append(("", told, f"refused: {error}"))
            continue
        ours = Session(judged.made.path).run(judged.inputs)
        rows.append(("", told, _difference(ours, theirs)))
    return rows


def _known(array: NDArray[Any]) -> NDArray[Any]:
    """An input as numpy writes it: float32 for bf16."""
    return array if array.dtype.kind in "fiub" else array.astype(np.float32)


def _judge_file(vendor: Vendor, name: str, folder: Path, arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    """(commands, verdict) of a file that is made already."""
    file = folder / f"{name}.bmodel"
    inputs = bm1684x_files.make(name, file)
    try:
        vendor.info(file)
        told = f"{vendor.disassemble(file):6} commands"
        theirs = vendor.run(file, inputs)
    except VendorError as error:
        return [("", f"refused: {error}")]
    return [("", told, _difference(Session(file).run(inputs), theirs))]


def _time(vendor: Vendor, name: str, folder: Path, arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    rows = []
    for precision in arguments.precision:
        try:
            chosen = arguments.target, precision, arguments.batch, folder
            told = compared(ours(name, *chosen), theirs(vendor, name, *chosen))
        except (BMError, VendorError) as error:
            told = f"not compiled: {error}"
        rows.append((precision, told))
    return rows


def _judge_theirs(vendor: Vendor, name: str, folder: Path, arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    graph = Graph(name)
    network = graph.finish(NETS[name](graph))
    place = folder / name
    place.mkdir(exist_ok=True)
    file = place / f"{name}.onnx"
    onnx.save(network, file)
    try:
        tensors = vendor.transform(file, [list(value.shape) for value in graph.inputs.values()], graph.inputs)
    except VendorError as error:
        return [("", f"not compiled: {error}")]
    table = place / "table"
    table.write_text("# tensor threshold min max\n" + "".join(ranges(key, value) for key, value in tensors.items()))
    rows = []
    for precision in arguments.precision:
        try:
            integers = precision == "int8" and zlib.crc32(name.encode()) % 3 == 0
            model = vendor.deploy(file, precision, table if precision == "int8" else None, integers=integers)
            theirs = vendor.run(model, graph.inputs)
            ours = Session(model).run(graph.inputs)
        except (BMError, VendorError) as error:
            rows.append((precision, f"refused: {error}"))
            continue
        rows.append((precision, _difference(ours, theirs)))
        if arguments.record:
            _record(arguments.record / f"{name}_{precision}.npz", model, graph.inputs, theirs)
    return rows


def _record(file: Path, model: Path, inputs: Results, outputs: Results) -> None:
    """Keys: "bmodel" (the bytes of the file, whose padding packs well), "in:NAME" and "out:NAME"."""
    arrays = {f"in:{name}": values for name, values in inputs.items()}
    arrays |= {f"out:{name}": values for name, values in outputs.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, bmodel=np.frombuffer(model.read_bytes(), np.uint8), **arrays)


def _difference(ours: Results, theirs: Results) -> str:
    """Either "identical", or how many numbers differ in their bits, and by how much at most."""
    if set(ours) != set(theirs):
        return f"outputs {sorted(theirs)} there, {sorted(ours)} here"
    for name, expected in theirs.items():
        if ours[name].size != expected.size:
            return f"'{name}' has {expected.size} numbers there, {ours[name].size} here"
    wanted, found = (
        np.concatenate([results[name].astype(np.float32).reshape(-1) for name in theirs]) for results in (theirs, ours)
    )
    differ = int((found.view(np.uint32) != wanted.view(np.uint32)).sum())
    if differ:
        return f"{differ} of {wanted.size} differ, by {np.abs(found - wanted).max():.3g} at most"
    return f"identical ({wanted.size} numbers, {np.unique(wanted).size} distinct)"


_DIRECTIONS = {
    "ours": ([*NETWORKS, *NETS], DEFAULT, _judge_ours),
    "theirs": (list(NETS), list(NETS), _judge_theirs),
    "bmlang": (bmlang_programs.names(), bmlang_programs.names(), _judge_bmlang),
    "bm1684x": (bm1684x_files.names(), bm1684x_files.names(), _judge_file),
    "time": (list(SHAPES), TIMED, _time),
}
"""What there is to judge, what is judged when nothing is named, and how."""


if __name__ == "__main__":
    sys.exit(main())
