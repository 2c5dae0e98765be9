"""`bmcompiler.okkernel` is the package `bmcompiler.backends.bm1684.okkernel`, under the name that users type."""

from __future__ import annotations

import sys

from bmcompiler.backends.bm1684 import okkernel

sys.modules[__name__] = okkernel
