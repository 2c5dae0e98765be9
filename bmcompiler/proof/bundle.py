"""What reproduces a wrong program without the user's network: a folder to look at, run again, or send."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.errors import WrongProgramError
from bmcompiler.files.kinds import ARRAYS, TEXT
from bmcompiler.files.mlir import save_module
from bmcompiler.files.store import atomic_output, make_folder
from bmcompiler.version import version

if TYPE_CHECKING:
    from bmcompiler.proof.locate import Part

IR, SAMPLE, PROGRAM, README = "part.mlir", "sample.npz", "part.bmodel", "README.txt"


def keep(error: WrongProgramError, target: str, level: int, folder: Path) -> None:
    """Write IR with its weights, inputs, the wrong program and how to run them; the error's remedy then names them.

    Raises OSError when a file cannot be written, UsageError where the folder is a file.
    """
    part = error.part
    if part is None:
        return
    from bmcompiler import bmodel

    make_folder(folder)
    save_module(part.module, folder / IR)
    with atomic_output(folder / SAMPLE, ARRAYS) as stream:
        np.savez(stream, **dict(part.inputs))  # type: ignore[arg-type]
    if part.model is not None:
        bmodel.save(part.model, folder / PROGRAM)
    with atomic_output(folder / README, TEXT) as stream:
        stream.write(_readme(error, part, target, level))
    error.remedy = f"report it, with the folder {folder}; {README} there says how to run it again"


def _readme(error: WrongProgramError, part: Part, target: str, level: int) -> str:
    layer = f"layer '{error.layer}' ({error.kind}): " if error.layer else ""
    check = f"--check-ir {IR} --data {SAMPLE} --raw"
    kept = f"The program as it was found:\n\n    bmnet-run {PROGRAM} {check}\n\n" if part.model is not None else ""
    return (
        f"bmcompiler {version()}, {target}, --opt {level}\n\n{layer}{error.reason}\n\n"
        f"{IR} is the part of the network that shows it, with its weights beside it, {SAMPLE} its inputs as the "
        f"device takes them.\n\n{kept}Compiled again:\n\n"
        f"    bmnet-compile {IR} --target {target} --opt {level} --pipeline dead-code --check never -o again.bmodel\n"
        f"    bmnet-run again.bmodel {check}\n"
    )
