"""Calibration tables for tests of plans: with one, a net has its cheapest modes, and nobody measures others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import save_table


def table_of(module: Module, data: Mapping[str, np.ndarray], folder: Path) -> Path:
    """The file of a net's thresholds on samples; the module, which is changed, is not to be used any more."""
    ctx = PassContext(data=dict(data))
    run_pipeline(module, "canonicalize,calibrate", ctx)
    assert ctx.table is not None
    save_table(ctx.table, folder / "net.table")
    return folder / "net.table"
