"""BMLang on the BM1684X: the simulator gives the bits of the eager result; what the host computes is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bmlang_samples import Case, call, called, given_to
from test_bmlang_chip import NAMES, ON_THE_HOST, TOGETHER, cases, same

from bmcompiler import bmlang
from bmcompiler.bmlang import BOTH, COMPUTE_CPU, FLOAT32, INT16, Arithmetic, Compilation, ConvParam, QCalMode, Tensor

CHIP = "BM1684X"


def check(name: str, chosen: Sequence[Case], folder: Path, level: int = 2) -> Compilation:
    """Compile calls of one operator as one program: chip, eager chip arithmetic and plain arithmetic agree."""
    given = given_to(name, chosen)
    with bmlang.init(BOTH, CHIP, folder, arithmetic=Arithmetic.CHIP) as program:
        made = called(name, given, chosen)
        compiled = program.compile_with_check("one", program.inputs, [one for each in made for one in each], level)
        assert not any(compiled.errors.values()), (chosen, compiled.errors)
    with bmlang.init(COMPUTE_CPU, CHIP):
        for chips, one, case in zip(made, given, chosen) if name != "sequence_gen" else ():
            for chip, exact in zip(chips, call(name, one, case[2])):
                same(chip.get_data(), exact.get_data(), case)
    return compiled


def on_the_host(name: str, case: Case) -> bool:
    """Whether the host computes a call."""
    _, ins, _ = case
    return name in ON_THE_HOST or (name == "pool" and ins[0].is_integer)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_choice_of_types_has_the_same_bits(name: str, tmp_path: Path) -> None:
    every = cases(name)
    for first in range(0, len(every), TOGETHER):
        chosen = every[first : first + TOGETHER]
        hosts = sum(on_the_host(name, case) for case in chosen)
        assert bool(check(name, chosen, tmp_path).host) == bool(hosts), (name, chosen)


@pytest.mark.parametrize("name", ["conv", "deconv", "matrix_mul", "topk", "cast"])
def test_an_operator_is_chip_commands_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """Of products one choice for each mode and each kind of bias."""
    chosen = list({(case[0], case[1][2:]): case for case in cases(name)}.values())
    assert not check(name, chosen, tmp_path, 0).host


@pytest.mark.parametrize("depth", [40, 700])
def test_sums_that_float32_does_not_hold_are_made_in_parts(depth: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(depth)
    x = Tensor(data=np.full((1, depth, 3, 3), 127, np.int8))
    w = Tensor(data=rng.integers(100, 127, (2, depth, 2, 2), endpoint=True).astype(np.int8))
    bias = Tensor(data=np.array([5, -3], np.int16).reshape(1, 2, 1, 1))
    param = ConvParam(scale=2.0**-11, mode=QCalMode.HighPrecisionSymmetric)
    with bmlang.init(BOTH, CHIP, tmp_path) as program:
        w, bias = bmlang.constdata(w), bmlang.constdata(bias)
        found = bmlang.conv([x, w, bias], param, dtype=INT16)
        assert not program.compile_with_check("one", program.inputs, [found]).host
    total = 127 * w.get_data().astype(np.int64).sum((1, 2, 3)) + [5, -3]
    np.testing.assert_array_equal(found.get_data()[0, :, 0, 0], (total + 1024) >> 11)


@pytest.mark.parametrize("entries", [np.int8, np.uint8, np.float32])
def test_tables_and_indices_may_be_computed(entries: type[np.generic], tmp_path: Path) -> None:
    """Of `lut` and `index_select`: the program's inputs are the table and the indices."""
    rng = np.random.default_rng(6)
    table = (rng.normal(size=256) * 50).astype(entries)
    x, chosen = rng.integers(-128, 128, (2, 5, 7)).astype(np.int8), rng.integers(0, 5, 9).astype(np.int32)
    with bmlang.init(BOTH, CHIP, tmp_path) as program:
        found = bmlang.lut(Tensor("x", data=x), Tensor("t", data=table))
        real = found if entries is np.float32 else bmlang.cast(found, dtype=FLOAT32)
        picked = bmlang.index_select(real, 1, Tensor("i", data=chosen))
        compiled = program.compile_with_check("one", program.inputs, [picked])
        assert compiled.host == [] and sorted(one.name for one in program.inputs) == ["i", "t", "x"]
    np.testing.assert_array_equal(picked.get_data(), table[x.view(np.uint8)][:, chosen])
