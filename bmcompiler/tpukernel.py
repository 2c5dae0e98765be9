"""`bmcompiler.tpukernel` is the package `bmcompiler.backends.bm1684x.tpukernel`, under the name that users type."""

from __future__ import annotations

import sys

from bmcompiler.backends.bm1684x import tpukernel

sys.modules[__name__] = tpukernel
