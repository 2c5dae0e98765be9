"""The vendor's tools for BM1684 and BM1684X as functions: disassemble, run on its runtime and C model, compile for it.

They come with the wheel `tpu_mlir` (checked: 1.30.2) in a virtual environment of its own, Python 3.10:

    python3.10 -m venv VENV
    VENV/bin/pip install "setuptools<66" "numpy==1.24.3" tpu_mlir psutil flatbuffers
    VENV/bin/pip install onnx==1.16.2 onnxruntime==1.17.3 onnxsim onnxruntime_extensions torch filelock   # to compile
    VENV/bin/pip install "setuptools<66"        # torch brings a newer one, under which the wheel does not start

The wheel's `lib/third_party` brings system libraries that clash with newer hosts (the tools then die at start): move
libc, libm, libpthread, libstdc++ and libgcc_s out of that folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[np.float32]]
COMMAND = re.compile(r"%[BD]\d+ = ")


class VendorError(Exception):
    """A vendor tool failed; the text is the last telling line of what it printed."""


@dataclass(frozen=True)
class Vendor:
    """The tools of one virtual environment; `seconds` limits each call."""

    venv: Path
    seconds: int = 300

    def info(self, model: Path) -> str:
        """What model_tool says about a file, after verifying it. Raises VendorError."""
        return self._call("model_tool", "--info", model)

    def disassemble(self, model: Path) -> int:
        """The number of commands bmodel_dis finds in a file. Raises VendorError."""
        return len(COMMAND.findall(self._call("bmodel_dis", model)))

    def run(self, model: Path, inputs: Arrays) -> dict[str, NDArray[np.float32]]:
        """Outputs of a file by name, as real values. Raises VendorError."""
        with tempfile.TemporaryDirectory() as folder:
            given, results = Path(folder) / "in.npz", Path(folder) / "out.npz"
            np.savez(given, **dict(inputs))
            self._call(
                "model_runner", "--input", given, "--model", model.resolve(), "--output", results, folder=Path(folder)
            )
            if not results.exists():
                raise VendorError("model_runner wrote no results")
            with np.load(results) as found:
                return {name: found[name].astype(np.float32) for name in found.files}

    def run_as_board(self, model: Path, inputs: Arrays, chip: str) -> dict[str, NDArray[np.float32]]:
        """The same by `bmnet-run --device board:0`: the vendor's libraries are opened, below them the C model."""
        libraries = next(self.venv.resolve().glob("lib/python3*/site-packages/tpu_mlir/lib"))
        with tempfile.TemporaryDirectory() as folder:
            board = Path(folder)
            for name in ("libbmlib.so", "libbmlib.so.0", "libbmrt.so"):
                (board / name).symlink_to(libraries / name)
            (board / "libcmodel.so").symlink_to(libraries / f"libcmodel_{chip}.so")
            np.savez(board / "in.npz", **dict(inputs))
            searched = os.pathsep.join(map(str, (board, libraries, libraries / "third_party")))
            command = [Path(sys.executable).with_name("bmnet-run"), model.resolve(), "--device", "board:0"]
            self._output(
                [*command, "--data", board / "in.npz", "--output", board / "out.npz"],
                os.environ | {"LD_LIBRARY_PATH": searched, "BMCOMPILER_BOARD_LIBRARIES": folder},
                board,
            )
            with np.load(board / "out.npz") as found:
                return {name: found[name] for name in found.files}

    def transform(self, onnx: Path, shapes: list[list[int]], inputs: Arrays) -> dict[str, NDArray[np.float32]]:
        """Make ONNX.mlir beside a network; returns every tensor of it for these inputs. Raises VendorError."""
        folder = onnx.parent
        np.savez(folder / "in.npz", **dict(inputs))
        text = str(shapes).replace(" ", "")
        self._call(
            "model_transform", "--model_name", onnx.stem, "--model_def", onnx.name, "--input_shapes", text,
            "--test_input", "in.npz", "--test_result", "top.npz", "--mlir", f"{onnx.stem}.mlir",
            "--tolerance", "0.5,0.5",  # noise as input: deep tensors of trained nets are mostly rounding
            folder=folder,
        )  # fmt: skip
        with np.load(folder / "top.npz") as found:
            return {name: found[name] for name in found.files}

    def deploy(
        self, onnx: Path, quantize: str, table: Path | None = None, *, integers: bool = False, chip: str = "bm1684"
    ) -> Path:
        """Compile what `transform` made; `integers` leaves inputs and outputs quantized. Raises VendorError."""
        mlir, model = onnx.with_suffix(".mlir"), onnx.with_name(f"{onnx.stem}_{quantize}.bmodel")
        options = [] if table is None else ["--calibration_table", table]
        options += ["--quant_input", "--quant_output"] if integers else []
        self._call(
            "model_deploy", "--mlir", mlir.name, "--quantize", quantize.upper(), "--processor", chip,
            "--model", model.name, *options, folder=onnx.parent,
        )  # fmt: skip
        return model

    def _call(self, tool: str, *arguments: object, folder: Path | None = None) -> str:
        bin = self.venv.resolve() / "bin"
        unset = ("PYTHONPATH", "PYTHONHOME")
        environment = {key: value for key, value in os.environ.items() if key not in unset}
        environment |= {"PATH": f"{bin}{os.pathsep}{environment.get('PATH', '')}", "VIRTUAL_ENV": str(self.venv)}
        environment["OMP_NUM_THREADS"] = "1"
        return self._output([bin / tool, *arguments], environment, folder)

    def _output(self, command: Sequence[object], environment: Mapping[str, str], folder: Path | None) -> str:
        tool = Path(str(command[0])).name
        try:
            done = subprocess.run(
                list(map(str, command)),
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise VendorError(f"{tool} did not end within {self.seconds} s") from error
        printed = done.stdout + done.stderr
        if done.returncode or "Traceback" in printed:
            raise VendorError(f"{tool}: {_telling_line(printed) or f'exit code {done.returncode}'}")
        return printed


def _telling_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FATAL|ASSERT|Error|error", line)]
    return (telling or lines or [""])[0][:200]
