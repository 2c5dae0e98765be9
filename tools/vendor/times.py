"""Programs of both compilers under the timing model of this project: cycles and bytes of the same networks.

The vendor's programs are decoded and timed command by command exactly as ours are. In int8 both are calibrated with
seeded noise (`models/noise.py`); theirs is symmetric throughout, ours what the choice of modes makes of it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from noise import noise
from numpy.typing import NDArray

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.bmodel.bm168x import Bm168xModel
from vendor.commands import Vendor
from vendor.networks import MODELS, THIRD_PARTY

SHAPES: dict[str, list[int]] = json.loads((MODELS / "shapes.json").read_text(encoding="utf-8"))
TIMED = ("light_resnet50", "mobilenetv2_160", "ppocr_v4_det", "yolox_chars", "centerface_480")
SAMPLES = 8


@dataclass(frozen=True)
class Times:
    """Estimated cycles of one run, bytes over the bus, and those of them that are results read again."""

    cycles: int
    moved: int
    spill: int
    commands: int

    @staticmethod
    def of(model: Bm168xModel) -> Times:
        """Times of the first stage of a model, under its chip's model of time."""
        analyze = find_analyzer(model.target)
        assert analyze is not None
        timing = analyze(model, 0).timing()
        moved = timing.weights + timing.loaded + timing.stored
        commands = sum(engine.commands for engine in timing.engines)
        return Times(timing.cycles, moved, timing.loaded + timing.stored - timing.features, commands)


def theirs(vendor: Vendor, name: str, chip: str, precision: str, batch: int, folder: Path) -> Times:
    """The vendor's program; the model file is kept in `folder` and used again. Raises VendorError."""
    place = folder / chip / f"{name}_{batch}"
    model = place / f"{name}_{precision}.bmodel"
    if not model.exists():
        place.mkdir(parents=True, exist_ok=True)
        source, table = place / f"{name}.onnx", place / "table"
        if not table.exists():
            shutil.copy(THIRD_PARTY / source.name, source)
            tensors = vendor.transform(source, [[batch, *SHAPES[name]]], _samples(name, batch))
            lines = "".join(ranges(key, value) for key, value in tensors.items())
            table.write_text("# tensor threshold min max\n" + lines)
        vendor.deploy(source, precision, table if precision == "int8" else None, chip=chip)
    loaded = bmodel.load(model)
    assert isinstance(loaded, Bm168xModel)
    return Times.of(loaded)


def ours(name: str, chip: str, precision: str, batch: int, folder: Path) -> Times:
    """Our program; what calibration for int8 found is kept in `folder`. Raises BMError."""
    source, shape = THIRD_PARTY / f"{name}.onnx", [[batch, *SHAPES[name]]]
    place = folder / chip / f"{name}_{batch}"
    place.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {}
    if precision == "int8":
        options = {"data": _samples(name, SAMPLES), "quant_table": place / f"{name}.modes"}
    result = bmcompiler.compile(source, target=chip, quantize=precision, shapes=shape, **options)
    return Times.of(result.model)


def ranges(name: str, values: NDArray[np.float32]) -> str:
    """The line of a tensor in the vendor's calibration table."""
    low, high = float(values.min()), float(values.max())
    return f"{name} {max(abs(low), abs(high)) or 1.0:.7f} {low:.7f} {high:.7f}\n"


def compared(ours: Times, theirs: Times) -> str:
    """A line of the table: cycles, bytes and spill of theirs and ours, and the ratios."""
    share = ours.spill / theirs.spill if theirs.spill else 0.0
    return (
        f"cycles {theirs.cycles / 1e6:6.3f} {ours.cycles / 1e6:6.3f} M = {ours.cycles / theirs.cycles:4.2f}x"
        f"  bytes {theirs.moved / 1e6:7.2f} {ours.moved / 1e6:7.2f} MB = {ours.moved / theirs.moved:5.3f}x"
        f"  spill {theirs.spill / 1e6:6.2f} {ours.spill / 1e6:6.2f} MB = {share:4.2f}x"
        f"  commands {theirs.commands:5} {ours.commands:5}"
    )


def _samples(name: str, count: int) -> dict[str, NDArray[np.float32]]:
    (source,) = bmcompiler.load_network(THIRD_PARTY / f"{name}.onnx", shapes=[[1, *SHAPES[name]]]).main.input_names
    return {source: noise(name, (count, *SHAPES[name]))}
