"""The worked examples do what they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "bmlang"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bmlang_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_digits_are_found_behind_a_compiled_network(tmp_path: Path) -> None:
    assert sorted(example("detect_digits").main(tmp_path)) == [(0, 4, 6), (8, 80, 0), (20, 40, 1)]


def test_attention_in_int8_is_close_in_every_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    errors = example("int8_attention").main(tmp_path)
    assert len(errors) == 3
    assert max(errors.values()) < 0.06
    assert len(set(errors.values())) == 3
    assert "HighPrecisionAsymmetric" in capsys.readouterr().out


def test_images_are_prepared_on_the_chip_alone(tmp_path: Path) -> None:
    assert example("prepare_images").main(tmp_path) < 1e-5


def test_every_example_is_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"detect_digits", "int8_attention", "prepare_images"}
