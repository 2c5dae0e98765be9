"""A compilation in a process of its own: which bytes it gives, what processor time and memory it takes.

`python -m corpus.elsewhere FOLDER` compiles FOLDER/0.onnx, 1.onnx, ... with the arguments in FOLDER/arguments.json,
and prints a line of JSON for each.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx

import bmcompiler

from .trial import Arrays, CheckError, Trial, bytes_of, quiet

_LIMIT = 240
"""Seconds of processor time of such a process: on a loaded machine it may take longer."""


@dataclass(frozen=True)
class Compilation:
    """digest: of the model file. seconds: of processor time. peak: bytes of memory beside what was there before."""

    digest: str
    seconds: float
    peak: int


def compiled_elsewhere(
    trial: Trial, nets: Sequence[tuple[onnx.ModelProto, Arrays]], **more: object
) -> list[Compilation]:
    """What compilations of networks, one after the other in a new process, give and take."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (model, data) in enumerate(nets):
            onnx.save(model, folder / f"{number}.onnx")
            np.savez(folder / f"{number}.npz", **data)
        given = trial.arguments(**more)
        del given["data"]
        (folder / "arguments.json").write_text(json.dumps(given), encoding="utf-8")
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        seed = str(int.from_bytes(os.urandom(2), "big"))  # sets and dictionaries of strings have another order
        environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "corpus.elsewhere", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == -signal.SIGXCPU:
            raise CheckError("compile time", f"another process takes more than {_LIMIT} s")
        if done.returncode:
            raise CheckError("another process", f"it fails there: {done.stderr.strip().splitlines()[-1]}")
        return [Compilation(**json.loads(line)) for line in done.stdout.splitlines()]


def digest(content: bytes) -> str:
    """What two files of the same bytes have in common."""
    return hashlib.sha256(content).hexdigest()


def main(folder: Path) -> None:
    """Compile all of a folder."""
    resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT, -1))
    given = json.loads((folder / "arguments.json").read_text(encoding="utf-8"))
    for number in range(len(list(folder.glob("*.onnx")))):
        with np.load(folder / f"{number}.npz") as stored:
            data = dict(stored) if given["quantize"] == "int8" else None
        before = _memory(fresh=True)
        start = time.process_time()
        result = bmcompiler.compile(folder / f"{number}.onnx", **given, name="net", data=data, log=quiet)
        seconds, peak = time.process_time() - start, _memory() - before
        print(json.dumps(asdict(Compilation(digest(bytes_of(result)), seconds, peak))))
        del result, data


def _memory(fresh: bool = False) -> int:
    """The most bytes that the process held; `fresh`: those it holds now, and the most is counted anew."""
    if fresh:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    wanted = "VmRSS:" if fresh else "VmHWM:"
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
