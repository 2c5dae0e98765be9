"""What each technique of int8 brings, left out one at a time.

A row shows the score of the task (0 to 100; nothing for encoders), how far the outputs are from float32 on samples that
calibration has not seen (the largest relative error), and the estimated cycles. Networks as of `accuracy.py`, and the
encoders of `models/transformers.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from accuracy import Errors
from tasks import reference
from tasks.material import MODELS
from tasks.measure import Program, compiled
from tasks.networks import NETWORKS, Network

import bmcompiler
from bmcompiler.runtime.session import Session
from bmcompiler.target import find_target

sys.path.insert(0, str(MODELS))
from transformers import NETS, samples, transformer

CHIPS = ("bm1684", "bm1684x", "bm1880")
LEFT_OUT = {
    "nothing": ("", ""),
    "equalization": ("equalize,", ""),
    "cut of dead channels": ("equalize,", "equalize{dead=false},"),
    "choice of thresholds (kl)": ("{method=auto}", ""),
    "choice of modes (cheapest)": ("quantize{", "quantize{mode=low,"),
    "rounding by samples": ("quantize{", "quantize{round_weights=false,"),
    "second choice of modes": ("quantize{", "quantize{second_choice=false,"),
    "nothing, with shifts of channels": ("quantize{", "quantize{per_channel=true,"),
    "nothing, with corrected biases": ("quantize{", "quantize{correct_bias=true,"),
}
"""Technique -> (part of the pipeline, what stands there without it)."""


def pipeline(chip: str, technique: str) -> str:
    """The target's int8 pipeline without a technique."""
    text = find_target(chip).pipeline("int8", 2).replace("quantize,", "quantize{scheme=shift},")
    part, other = LEFT_OUT[technique]
    if part not in text:
        raise SystemExit(f"the pipeline of {chip} has no '{part}': {text}")
    return text.replace(part, other) if part else text


def task(net: Network, chip: str, technique: str, count: int) -> str:
    """The columns of a network with a task."""
    program = compiled(net, chip, samples=count, pipeline=pipeline(chip, technique))
    errors = Errors(reference.imported(net))
    score = net.metric(errors.watch(program.run))
    return f"{score * 100:6.1f} {errors.worst:8.2%} {program.cycles:12,}"


def encoder(name: str, chip: str, technique: str, count: int) -> str:
    """The columns of an encoder."""
    with tempfile.TemporaryDirectory() as folder:
        path = transformer(name, Path(folder))
        data, seen = samples(name, 16, seed=1), samples(name, count)
        result = bmcompiler.compile(path, target=chip, quantize="int8", pipeline=pipeline(chip, technique), data=seen)
        plain = bmcompiler.compile(path, target=chip, quantize="f32")
    (found,), (wanted,) = (each.values() for each in (Session(result.model).run(data), Session(plain.model).run(data)))
    error = np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted)
    return f"{'':6} {error:8.2%} {Program(result.model, chip, 0).cycles:12,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*CHIPS, []], metavar="CHIP", help="default: bm1684 bm1880")
    parser.add_argument("--nets", nargs="+", help="default: all that have been fetched; encoders not on the bm1880")
    parser.add_argument("--without", nargs="+", choices=LEFT_OUT, metavar="TECHNIQUE", help="default: each")
    parser.add_argument("--samples", type=int, default=32, help="for calibration, %(default)s")
    given = parser.parse_args()
    known = {name: net for name, net in NETWORKS.items() if net.there}
    for name in given.nets or [*known, *NETS]:
        for chip in given.chips or ("bm1684", "bm1880"):
            if name in NETS and chip == "bm1880":
                continue
            for technique in given.without or LEFT_OUT:
                if name in NETS:
                    text = encoder(name, chip, technique, given.samples)
                else:
                    text = task(known[name], chip, technique, given.samples)
                print(f"{name:16} {chip} without {technique:30} {text}", flush=True)


if __name__ == "__main__":
    main()
