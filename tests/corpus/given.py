"""`python -m corpus.given NET.onnx --data samples.npz`: a network of somebody, asked in every mode.

Each chip and precision at levels 0 and 2, in a process of its own: does it compile, is the program what `evaluate`
gives in every bit (`check="always"`), and how far is it from ONNX Runtime on the first sample? Exit status 1 where a
program is wrong, there is a traceback, or an output is no number though it is one in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

import bmcompiler

from .cases import MODES
from .rounded import relative_error

WRONG = ("differs", "traceback", "no number", "died")
"""Outcomes that are faults; "proven", "refused" and "timeout" are none."""


def answer(path: Path, data: dict[str, np.ndarray], shapes: list[list[int]] | None, mode: tuple[Any, ...]) -> str:
    """What becomes of a network in a mode: an outcome, and what there is to say of it."""
    chip, precision, level = mode
    samples = data if precision == "int8" else None
    try:
        result = bmcompiler.compile(
            path, target=chip, quantize=precision, opt=level, shapes=shapes, data=samples, check=1, log=lambda _: None
        )
        taken = {info.name: list(info.shape) for info in result.session().inputs}
        inputs = {name: data[name][: shape[0]] if shape else data[name][0] for name, shape in taken.items()}
        found = result.run(inputs)
        return compared(found, real(path, inputs, data), result)
    except bmcompiler.errors.WrongProgramError as error:
        return f"differs {error}"
    except bmcompiler.errors.BMError as error:
        return f"refused {error}"
    except Exception:
        return f"traceback {traceback.format_exc()}"


def real(path: Path, inputs: dict[str, np.ndarray], data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime gives for inputs; those that the program has no more are taken from the samples."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    values = {i.name: inputs.get(i.name, data[i.name][0]) for i in session.get_inputs()}
    typed = {i.name: values[i.name].astype(kinds.get(i.type, values[i.name].dtype)) for i in session.get_inputs()}
    return dict(zip((out.name for out in session.get_outputs()), session.run(None, typed)))


def compared(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], result: bmcompiler.Result) -> str:
    """The largest error of an output, and that the program is proven."""
    for name, value in found.items():
        lost = int((~np.isfinite(value)).sum())
        if lost and np.isfinite(wanted[name]).all():
            return f"no number {name}: {lost} of {value.size} elements"
    errors = {name: relative_error(value, wanted[name]) for name, value in found.items()}
    proof = "" if result.checked is None else str(result.checked)
    return f"proven error {max(errors.values()):.3g} ({max(errors, key=errors.__getitem__)}) {proof}"


def asked(timeout: float, *case: Any) -> str:
    """`answer` in a process of its own, which may take so many seconds."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(answer(*case)))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(timeout) else f"timeout more than {timeout:.0f} s"
    except EOFError:
        return "died without an answer"
    finally:
        process.kill()
        process.join()


def main() -> int:
    """Ask a network in all modes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="samples by input name, .npz")
    parser.add_argument("--shapes", type=json.loads, help="of the inputs, in order; else those of the file")
    parser.add_argument("--chip")
    parser.add_argument("--precision")
    parser.add_argument("--level", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one mode")
    options = parser.parse_args()
    with np.load(options.data) as file:
        data = dict(file)
    wrong = 0
    for chip, precision in MODES:
        if options.chip not in (None, chip) or options.precision not in (None, precision):
            continue
        for level in options.level:
            start = time.monotonic()
            text = asked(options.timeout, options.net, data, options.shapes, (chip, precision, level))
            wrong += text.startswith(WRONG)
            print(f"{options.net.stem} {chip} {precision} {level} {time.monotonic() - start:.0f} s: {text}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
