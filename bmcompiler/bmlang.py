"""`bmcompiler.bmlang` is the package `bmcompiler.frontends.bmlang`, under the name that users type."""

from __future__ import annotations

import sys

import bmcompiler.frontends.bmlang as bmlang  # noqa: PLR0402 - mypy does not find it in the package, which is empty

sys.modules[__name__] = bmlang
