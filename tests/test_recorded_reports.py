"""What analysis says of compiled programs, engine by engine and layer by layer: `tests/data/reports`.

Cycles in total are in `tests/data/programs`; here is where they go to, and what of the bytes and products is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import program_nets
import pytest

import bmcompiler
from bmcompiler.analysis.profile import Analysis, LayerTime, analysis_of

FOLDER = Path(__file__).parent
CASES = [
    (chip, precision, make.__name__, level)
    for chip, precision in (("bm1684", "f32"), ("bm1684", "int8"), ("bm1684x", "f16"), ("bm1684x", "int8"),
                            ("bm1880", "int8"), ("dv700", "f16"))
    for make, level in ((program_nets.mobile, 2), (program_nets.detector, 1), (program_nets.recurrent, 2))
]  # fmt: skip


def words(value: Any) -> str:
    """A field: sums of floats may differ in their last bits from one processor to the next."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def report(analysis: Analysis) -> str:
    """Sums, engines and layers as lines, digests of the bytes that commands touch and of the trace, and races."""
    timing = analysis.timing()
    facts = {name: value for name, value in vars(timing).items() if name not in ("engines", "layers", "assumptions")}
    lines = [f"{name}\t{words(value)}" for name, value in facts.items()]
    lines += [f"ratio\t{words(timing.ratio)}", f"spill\t{timing.spill}"]
    lines += ["\t".join(("engine", *map(words, asdict(engine).values()))) for engine in timing.engines]
    lines.append("\t".join(field.name for field in fields(LayerTime)))
    lines += ["\t".join((*map(words, asdict(layer).values()), words(layer.ratio))) for layer in timing.layers]
    accesses = analysis.accesses()  # type: ignore[attr-defined]  # all of ours have them
    arrays = [value for value in vars(accesses).values() if isinstance(value, np.ndarray)]
    noted = sha256(b"".join(value.astype(np.int64).tobytes() for value in arrays)).hexdigest()[:10]
    trace = sha256(analysis.trace().encode()).hexdigest()[:10]
    races = "; ".join(f"{race.first}, {race.second}, {race.where}" for race in analysis.races())
    lines += [f"accesses\t{len(accesses)}\t{int(accesses.write.sum())} write\t{noted}", f"trace\t{trace}"]
    return "\n".join([*lines, f"races\t{races or 'none'}", ""])


@pytest.mark.parametrize(("chip", "precision", "name", "level"), CASES)
def test_reports_are_those_that_were_recorded(
    chip: str, precision: str, name: str, level: int, golden: Callable[[Path, str], None]
) -> None:
    make, shape = next(net for net in program_nets.MIXED if net[0].__name__ == name)
    _, module = program_nets.network(make, shape)
    data = {"x": np.random.default_rng(1).standard_normal((2 * shape[0], *shape[1:]), np.float32)}
    result = bmcompiler.compile_module(
        module, target=chip, quantize=precision, data=data if precision == "int8" else None, check="never", opt=level
    )
    analysis = analysis_of(chip, result.model)
    assert analysis is not None
    golden(FOLDER / f"data/reports/{chip}_{precision}_{name}.txt", report(analysis))
