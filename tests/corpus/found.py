"""A failure as files, in `found/`: the network, its samples, and what was asked of it. `test_found.py` asks again."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from bmcompiler.errors import BMError

from .checks import CHECKS, CheckError, Trial
from .shrink import Sample, shrunk

FOUND = Path(__file__).parent / "found"
LEGITIMATE: tuple[str, ...] = ()
"""Parts of refusals that are answers: until a run shows one, each refusal is a finding."""
_SHRINKING = 60.0
"""Seconds that a failure is shrunk for."""


@dataclass(frozen=True)
class Finding:
    """What does not hold. A smaller network whose finding has the same `kind` has the same fault."""

    kind: str
    text: str
    trace: str = ""


def asked(sample: Sample, mode: tuple[str, str, int], check: str) -> Finding | None:
    """What one check finds."""
    return answer(Trial(sample.model, sample.data, sample.batch, *mode), check)


def answer(trial: Trial, check: str) -> Finding | None:
    """What one check finds in a trial."""
    try:
        CHECKS[check].ask(trial)
    except CheckError as error:
        return Finding(error.kind, str(error))
    except BMError as error:
        legitimate = any(words in str(error) for words in LEGITIMATE)
        return Finding("refused" if legitimate else f"refused {type(error).__name__}", str(error))
    except Exception as error:  # a traceback is what the corpus looks for
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}:{at.lineno} {at.name}"
        return Finding(f"traceback {where}", f"{type(error).__name__}: {error}", traceback.format_exc())
    return None


def smallest(sample: Sample, mode: tuple[str, str, int], check: str, kind: str) -> Sample:
    """The sample with as few nodes as still fail in the same way."""
    end = time.monotonic() + _SHRINKING

    def fails(smaller: Sample) -> bool:
        if time.monotonic() > end:
            return False
        finding = asked(smaller, mode, check)
        return finding is not None and finding.kind == kind

    return shrunk(sample, fails)


def write(sample: Sample, mode: tuple[str, str, int], check: str, finding: Finding, seed: int) -> Path:
    """The files of a failure; gives the path of the network."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{'-'.join(map(str, mode))}-{seed}.onnx"
    onnx.save(sample.model, path)
    np.savez_compressed(path.with_suffix(".npz"), **sample.data)
    facts = {"mode": list(mode), "check": check, "kind": finding.kind, "text": finding.text, "seed": seed}
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return path


def again(path: Path) -> Finding | None:
    """What the check of a written failure finds now."""
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with np.load(path.with_suffix(".npz")) as data:
        sample = Sample(onnx.load(path), dict(data))
    chip, precision, level = facts["mode"]
    return asked(sample, (chip, precision, level), facts["check"])
