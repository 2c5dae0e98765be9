"""Compiled models (.bmodel) of every target: one `load`, one `save`.

    model = load("net.bmodel")          # the kind is told by content
    for stage in model.stages(): ...    # inputs, outputs, memory sizes
    save(model, "copy.bmodel")          # temporary file, then rename; equal models give equal bytes

Readers check every offset and length before use and map weights instead of copying them.
"""

from bmcompiler.bmodel.container import Container, load, loads, register, save
from bmcompiler.bmodel.model import BModel, Buffer, Stage, TensorInfo, digest

__all__ = ["BModel", "Buffer", "Container", "Stage", "TensorInfo", "digest", "load", "loads", "register", "save"]
