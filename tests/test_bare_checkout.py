"""Python started in the checkout finds the folder `bmcompiler` first: it works with its four folders beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("backends", "frontends", "passes", "runtime")
COMPILED = f"""
import bmcompiler
from importlib import import_module
bmcompiler.compile("models/resnet8/resnet8_mnist.onnx", target="bm1684")
print(*(import_module("bmcompiler." + part).__file__ for part in {PARTS}))
"""


@pytest.mark.parametrize("editable", [True, False])
def test_a_network_compiles_from_the_checkout(editable: bool) -> None:
    """Without the editable install: packages from a plain folder, whose `.pth` files nobody reads."""
    packages = {} if editable else {"PYTHONPATH": sysconfig.get_path("purelib")}
    options = [] if editable else ["-S"]
    done = subprocess.run(
        [sys.executable, *options, "-c", COMPILED], cwd=ROOT, env=os.environ | packages, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == [str(ROOT / part / "__init__.py") for part in PARTS]


def test_an_installed_package_has_its_parts_inside(tmp_path: Path) -> None:
    """A folder above a package is no part of it, whatever lies there."""
    (tmp_path / "bmcompiler").mkdir()
    (tmp_path / "passes").mkdir()
    (tmp_path / "bmcompiler" / "__init__.py").write_bytes((ROOT / "bmcompiler" / "__init__.py").read_bytes())
    code = "import bmcompiler; print(len(bmcompiler.__path__))"
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")}}
    done = subprocess.run([sys.executable, "-S", "-c", code], **options, capture_output=True, text=True)
    assert done.stdout == "1\n"
