"""`bmcompiler.bmlang` is the package `bmcompiler.frontends.bmlang`, under the name that users type."""

from __future__ import annotations

import sys

from bmcompiler.frontends import bmlang

sys.modules[__name__] = bmlang
