"""Random programs compile at every level: the simulator gives the bits of the IR, and integers those of each call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_programs import STEPS, Writer

from bmcompiler import bmlang
from bmcompiler.bmlang import BOTH, Arithmetic
from bmcompiler.errors import RuntimeUseError

MANY = 400


def check(seed: int, steps: int, folder: Path) -> list[str]:
    """Compile a program and compare; the steps it has. Floats may be far from those of single calls: they are compared
    with limits and rounded to integers on the way."""
    reals = bool(seed % 2)
    arithmetic = Arithmetic.CHIP if reals else Arithmetic.FRAMEWORK
    with np.errstate(all="ignore"), bmlang.init(BOTH, "BM1684", folder, arithmetic=arithmetic) as program:
        writer = Writer(seed, reals)
        made = [tensor for tensor in dict.fromkeys(writer.program(steps)) if tensor not in program.inputs]
        outputs = [tensor for tensor in made if program.recorded(tensor) is not None]
        try:
            program.compile_with_check("random", program.inputs, outputs, seed % 3)
        except RuntimeUseError as error:
            if not reals or "reference" not in str(error):
                raise AssertionError((seed, writer.log)) from error
    return writer.log


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    check(seed, 8, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10, MANY))
def test_many_random_programs(seed: int, tmp_path: Path) -> None:
    check(seed, 10, tmp_path)


def test_programs_have_steps_of_all_kinds(tmp_path: Path) -> None:
    found = {line.split()[0] for seed in range(12) for line in _written(seed)}
    assert found == {step.__name__ for step in STEPS}


def _written(seed: int) -> list[str]:
    with np.errstate(all="ignore"), bmlang.init(bmlang.COMPILE_TPU, "BM1684"):
        writer = Writer(seed, bool(seed % 2))
        writer.program(20)
    return writer.log
