"""The vendor's BM Runtime and BMKernel libraries, name by name: programs written against them port line by line."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest

from bmcompiler.backends.bm1880 import bmkernel
from bmcompiler.runtime import bmruntime

# Functions and parameters of both chapters of the SDK's manual; C out-parameters are left out, they are return values.
API = json.loads((Path(__file__).parents[1] / "data" / "bm1880_api.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", API["functions"])
def test_function_has_the_vendors_parameters(name: str) -> None:
    function = getattr(bmkernel if name.startswith("bmk1880_") else bmruntime, name)
    assert list(inspect.signature(function).parameters) == API["functions"][name]
    assert inspect.getdoc(function)


@pytest.mark.parametrize("name", API["structs"])
def test_parameters_struct_has_the_vendors_fields(name: str) -> None:
    assert [field.name for field in fields(getattr(bmkernel, name))] == API["structs"][name]
