"""BM1684X files of ours that the vendor's runtime judges: a kernel, and recorded programs of the vendor's compiler.

Of the recorded programs only what our model says is kept: streams, coefficients, tensors, memory sizes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.bmodel import bm168x

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
RECORDED = sorted(path.stem for path in (DATA / "bm1684x_programs").glob("*.npz"))
KERNEL = "kernel_softmax"
Inputs = dict[str, NDArray[Any]]


def names() -> list[str]:
    """All files."""
    return [KERNEL, *RECORDED]


def make(name: str, file: Path) -> Inputs:
    """Write the file; returns what to run it with."""
    return _kernel(file) if name == KERNEL else _recorded(name, file)


def _kernel(file: Path) -> Inputs:
    """The kernel of docs/tpukernel.md."""
    page = (ROOT / "docs" / "tpukernel.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:4]:
        exec(block.replace('"softmax.bmodel"', repr(str(file))), names)  # the page is ours, and tested
    return {"x": names["x"]}


def _recorded(name: str, file: Path) -> Inputs:
    with np.load(DATA / "bm1684x_models.npz") as models:
        model = bm168x.read(memoryview(models[name].tobytes()), name)
    ((_, stage),) = model.all_stages()
    subnets = [bm168x.TpuSubnet(stage.groups, stage.inputs, stage.outputs)]
    bare = replace(stage, subnets=list(subnets), source={}, locations=[])
    again = bm168x.Bm168xModel([bm168x.Bm168xNet(name, [bare])], chip=model.chip)
    file.write_bytes(b"".join(map(bytes, again.parts())))
    with np.load(DATA / "bm1684x_programs" / f"{name}.npz") as arrays:
        return {tensor.name: _reals(tensor, arrays[f"a/in/{tensor.name}"]) for tensor in stage.inputs}


def _reals(tensor: bm168x.Bm168xTensor, stored: NDArray[Any]) -> NDArray[np.float32]:
    """What the runner makes the recorded numbers of."""
    reals: NDArray[np.float32] = (stored.astype(np.float32) - tensor.zero_point) * np.float32(tensor.scale)
    return reals
