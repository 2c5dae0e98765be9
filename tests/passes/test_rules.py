"""Every rule of every pass, as text before and after, with equal outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cases_fusion  # noqa: F401 - fills CASES
import pytest
from cases import CASES
from nets import Net, apply

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("key", sorted(CASES), ids="/".join)
def test_rule_gives_the_reviewed_text(key: tuple[str, str], golden: Callable[[Path, str], None]) -> None:
    pass_name, rule = key
    module = CASES[key](Net())
    before = str(module)
    modified = apply(module, pass_name)
    after = str(module) if modified else "// unchanged\n"
    assert modified != rule.endswith(("-stays", "-stay"))
    golden(GOLDEN / pass_name / f"{rule}.mlir", f"// before\n{before}\n// after {pass_name}\n{after}")
