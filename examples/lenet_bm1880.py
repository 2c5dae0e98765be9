"""LeNet on BM1880, from a Caffe model to recognised digits: python examples/lenet_bm1880.py [FOLDER]

Every step is a command a user would type; it is printed before it runs. Files go to FOLDER (default: a temporary one).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

MODELS = Path(__file__).resolve().parent.parent / "models"


def run(*command: object) -> None:
    """Print and run one of the project's commands."""
    words = [str(word) for word in command]
    print("$", " ".join(Path(w).name if Path(w).is_absolute() else w for w in words), flush=True)
    beside = Path(sysconfig.get_path("scripts")) / words[0]
    program = str(beside) if beside.exists() else shutil.which(words[0])
    if program is None:
        sys.exit(f"{words[0]} is not installed: pip install . first")
    if subprocess.run([program, *words[1:]]).returncode:
        sys.exit(1)


def main(folder: Path) -> None:
    digits = np.load(MODELS / "digits.npz")
    calibration, samples, results = folder / "calib.npz", folder / "digits.npz", folder / "out.npz"
    np.savez(calibration, data=digits["calib"].astype(np.float32) / 255)
    np.savez(samples, data=digits["test"].astype(np.float32) / 255)
    model = folder / "lenet.bmodel"
    net = MODELS / "lenet"
    run(
        "bmnet-compile", net / "deploy.prototxt", net / "lenet.caffemodel",
        "--target", "bm1880", "--data", calibration, "-o", model,
    )  # fmt: skip
    print()
    run("bmnet-run", model, "--data", samples, "-o", results)
    scores = np.load(results)["prob"].reshape(len(digits["labels"]), -1)
    correct = int((scores.argmax(axis=1) == digits["labels"]).sum())
    print(f"\ntop-1: {correct} of {len(scores)} test digits = {correct / len(scores):.3f} (float32: 0.964)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        target = Path(sys.argv[1])
        target.mkdir(parents=True, exist_ok=True)
        main(target)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
