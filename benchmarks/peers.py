"""This compiler beside others: what a compilation costs, and what each says of mistakes (docs/peers.md).

    python benchmarks/peers.py FOLDER [--vendor VENV] [--vela VENV] [--rounds N]

FOLDER keeps the files that are compiled. VENDOR: an environment with the vendor's compiler, as tools/vendor/commands.py
says; VELA: one with `pip install ethos-u-vela onnx`. CPU seconds are user + system of a command with all that it
starts, the least of N rounds; the peak is the resident set, lines what it prints to both streams.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from vendor.commands import Vendor  # noqa: E402
from vendor.times import ranges  # noqa: E402

FETCHED = ROOT / "models" / "third_party"
NETS = {"squeezenet": "light_squeezenet", "resnet50": "light_resnet50"}


class Ran(NamedTuple):
    """A finished command."""

    seconds: float
    peak: float
    printed: str
    status: int


def run(words: list[object], folder: Path) -> Ran:
    """Run a command in a folder, with one thread for arithmetic and its own environment's tools first."""
    bins = os.pathsep.join([str(Path(str(words[0])).parent), os.environ["PATH"]])
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": bins}
    with tempfile.TemporaryFile("w+", errors="replace") as stream:
        child = subprocess.Popen(
            [str(word) for word in words], cwd=folder, env=settings, stdout=stream, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(child.pid, 0)
        stream.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return Ran(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, stream.read(), code)


class Tool(NamedTuple):
    """A compiler: the commands that make a model file of a network, one after the other."""

    name: str
    commands: list[list[object]]


def tools(net: Path, shape: str, vendor: Path | None, vela: Path | None) -> Iterator[Tool]:
    """The compilers that are there, without int8, which needs tables."""
    ours = Path(sys.executable).parent / "bmnet-compile"
    yield Tool("bmcompiler, BM1684 f32", [[ours, net, "--target", "bm1684", "--shapes", shape, "-o", "ours.bmodel"]])
    if vendor is not None:
        transform: list[object] = [vendor / "bin" / "model_transform", "--model_name", "net", "--model_def", net]
        transform += ["--input_shapes", shape, "--mlir", "net.mlir"]
        deploy: list[object] = [vendor / "bin" / "model_deploy", "--mlir", "net.mlir", "--processor", "bm1684"]
        yield Tool("tpu_mlir, BM1684 f32", [transform, [*deploy, "--quantize", "F32", "--model", "theirs.bmodel"]])
    if vela is not None and (small := net.with_suffix(".tflite")).exists():
        yield Tool("Vela, Ethos-U65 int8", [[vela / "bin" / "vela", small, "--accelerator-config", "ethos-u65-512"]])


def int8_tools(net: Path, shape: str, folder: Path, vendor: Path | None) -> Iterator[Tool]:
    """Both compilers for BM1684 with ranges that are known: those of one sample of noise."""
    ours = Path(sys.executable).parent / "bmnet-compile"
    (source,) = (
        each.name
        for each in onnx.load(net).graph.input
        if each.name not in {w.name for w in onnx.load(net).graph.initializer}
    )
    sample = {source: np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)}
    np.savez(folder / "noise.npz", **sample)
    run([ours.with_name("bmnet-calibrate"), net, "--data", "noise.npz", "--method", "max", "-o", "ours.table"], folder)
    options = ["--quantize", "int8", "--calibration-table", "ours.table", "-o", "ours8.bmodel"]
    yield Tool("bmcompiler, BM1684 int8 from a table", [[ours, net, "--target", "bm1684", *options]])
    if vendor is not None:
        tensors = Vendor(vendor).transform(net, [[1, 3, 224, 224]], sample)
        (folder / "theirs.table").write_text(
            "# name threshold min max\n" + "".join(map(ranges, tensors, tensors.values()))
        )
        transform: list[object] = [vendor / "bin" / "model_transform", "--model_name", "net", "--model_def", net]
        transform += ["--input_shapes", shape, "--mlir", "net.mlir"]
        deploy: list[object] = [vendor / "bin" / "model_deploy", "--mlir", "net.mlir", "--processor", "bm1684"]
        deploy += ["--quantize", "INT8", "--calibration_table", "theirs.table", "--model", "theirs8.bmodel"]
        yield Tool("tpu_mlir, BM1684 int8 from a table", [transform, deploy])


def costs(folder: Path, rounds: int, vendor: Path | None, vela: Path | None) -> None:
    """The table of compilations."""
    print("| network | compiler | CPU s | peak MB | lines printed |\n|---|---|---|---|---|")
    for name, file in NETS.items():
        net = folder / f"{name}.onnx"
        net.write_bytes((FETCHED / f"{file}.onnx").read_bytes())
        if vela is not None and name == "squeezenet":
            run(
                [
                    vela / "bin" / "python",
                    ROOT / "benchmarks" / "squeezenet_tflite.py",
                    net,
                    net.with_suffix(".tflite"),
                ],
                folder,
            )
        shape = "[[1,3,224,224]]"
        for tool in (*tools(net, shape, vendor, vela), *int8_tools(net, shape, folder, vendor)):
            runs = [[run(command, folder) for command in tool.commands] for _ in range(rounds)]
            failed = [each for parts in runs for each in parts if each.status]
            if failed:
                sys.exit(f"{tool.name}: {failed[0].printed[-500:]}")
            seconds = min(sum(each.seconds for each in parts) for parts in runs)
            peak = max(each.peak for parts in runs for each in parts)
            lines = sum(each.printed.count("\n") for each in runs[0])
            print(f"| {name} | {tool.name} | {seconds:.2f} | {peak:.0f} | {lines} |", flush=True)


def mistakes(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Networks that cannot be compiled: what is wrong, the file, and what a message should name."""
    whole = (FETCHED / "light_squeezenet.onnx").read_bytes()
    (folder / "damaged.onnx").write_bytes(whole[: len(whole) // 2])
    _net(folder / "unknown.onnx", [("Foo", ["x"], "a", "own"), ("Bar", ["a"], "y", "own")])
    _net(folder / "misfit.onnx", [("Conv", ["x", "w"], "y", "")])
    yield "a file that is not there", folder / "missing.onnx", ["missing.onnx"]
    yield "half of a file", folder / "damaged.onnx", ["damaged.onnx"]
    yield "two unknown ops", folder / "unknown.onnx", ["unknown.onnx", "Foo", "Bar"]
    yield "a convolution whose weight has other channels", folder / "misfit.onnx", ["misfit.onnx", "node_y"]


def _net(path: Path, nodes: list[tuple[str, list[str], str, str]]) -> None:
    made = [helper.make_node(kind, read, [out], f"node_{out}", domain=own) for kind, read, out, own in nodes]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, 8, 8]) for name in "xy"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.0] * 108)
    graph = helper.make_graph(made, "net", values[:1], values[1:], [weight])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def messages(folder: Path, vendor: Path | None, vela: Path | None) -> None:
    """The table of mistakes."""
    print("| mistake | compiler | exit status | lines printed | traceback | names |\n|---|---|---|---|---|---|")
    for what, path, names in mistakes(folder):
        for tool in tools(path, "[[1,4,8,8]]", vendor, None):
            show(what, tool.name.split(",")[0], run(tool.commands[0], folder), names)
        if vela is not None and path.name in ("missing.onnx", "damaged.onnx"):
            small = path.with_suffix(".tflite")
            if path.exists():
                whole = (folder / "squeezenet.tflite").read_bytes()
                small.write_bytes(whole[: len(whole) // 2])
            show(what, "Vela", run([vela / "bin" / "vela", small], folder), [small.name])


def show(what: str, tool: str, ran: Ran, names: list[str]) -> None:
    """A row: of the names that a message should have, those it has."""
    found = ", ".join(name for name in names if name in ran.printed) or "-"
    traced = "yes" if "Traceback" in ran.printed else "no"
    print(f"| {what} | {tool} | {ran.status} | {ran.printed.count(chr(10))} | {traced} | {found} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vendor", type=Path)
    parser.add_argument("--vela", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    vendor, vela = (None if venv is None else venv.absolute() for venv in (given.vendor, given.vela))
    costs(folder, given.rounds, vendor, vela)
    messages(folder, vendor, vela)


if __name__ == "__main__":
    main()
