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

from .checks import CHECKS
from .shrink import Sample, shrunk
from .shrink_sizes import smaller
from .trial import CheckError, NotAskedError, Trial

FOUND = Path(__file__).parent / "found"
LEGITIMATE: tuple[str, ...] = ()
"""Parts of refusals that are answers: until a run shows one, each refusal is a finding."""
_SHRINKING = 60.0
"""Seconds that a failure is shrunk for."""
_LARGEST = 200_000
"""Bytes of a file to be kept; a failure that is larger is known by its seed alone."""
_BEFORE = 6
"""How often smaller sizes are tried before nodes go: of a large network each try takes long."""


WRONG, COST, NOTED, NOT_ASKED = "wrong", "cost", "noted", "not asked"
"""What is found about a program: it is wrong, takes too long, is worth knowing; or nothing, for it was not asked."""


@dataclass(frozen=True)
class Finding:
    """What does not hold. A smaller network whose finding has the same `kind` has the same fault."""

    kind: str
    text: str
    trace: str = ""
    weight: str = WRONG


def asked(sample: Sample, mode: tuple[str, str, int], check: str) -> Finding | None:
    """What one check finds."""
    return answer(Trial(sample.model, sample.data, sample.batch, *mode), check)


def answer(trial: Trial, check: str) -> Finding | None:
    """What one check finds in a trial."""
    found = outcome(trial, check)
    return None if found is None or found.weight == NOT_ASKED else found


def outcome(trial: Trial, check: str) -> Finding | None:
    """What one check finds in a trial, or why it could not be asked."""
    row = CHECKS[check]
    try:
        row.ask(trial)
    except NotAskedError as error:
        return Finding(NOT_ASKED, str(error), weight=NOT_ASKED)
    except CheckError as error:
        return Finding(error.kind, str(error), weight=NOTED if row.noted else COST if row.cost else WRONG)
    except BMError as error:
        legitimate = any(words in str(error) for words in LEGITIMATE)
        kind, weight = ("refused", NOTED) if legitimate else (f"refused {type(error).__name__}", WRONG)
        return Finding(kind, str(error), weight=weight)
    except Exception as error:  # a traceback is what the corpus looks for
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}:{at.lineno} {at.name}"
        return Finding(f"traceback {where}", f"{type(error).__name__}: {error}", traceback.format_exc())
    return None


def smallest(sample: Sample, mode: tuple[str, str, int], check: str, kind: str) -> Sample:
    """The sample with as few nodes, on as small tensors, as still fail in the same way."""
    end = time.monotonic() + _SHRINKING

    def fails(candidate: Sample) -> bool:
        if time.monotonic() > end:
            return False
        finding = asked(candidate, mode, check)
        return finding is not None and finding.kind == kind

    sample = smaller(sample, fails, _BEFORE)
    return smaller(shrunk(sample, fails), fails)


def write(sample: Sample, mode: tuple[str, str, int], check: str, finding: Finding, seed: int) -> Path | None:
    """The files of a failure; gives the path of the network, None where they would be large."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{'-'.join(map(str, mode))}-{seed}.onnx"
    onnx.save(sample.model, path)
    np.savez_compressed(path.with_suffix(".npz"), **sample.data)
    if sum(each.stat().st_size for each in (path, path.with_suffix(".npz"))) > _LARGEST:
        path.unlink()
        path.with_suffix(".npz").unlink()
        return None
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
