"""Programs of one compilation as nets of their own, with inputs and outputs that last (bm1684x-llm.md 4)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from bmcompiler.bmodel.bm168x import IO_ALONE, Bm168xModel, Bm168xNet, Bm168xStage
from bmcompiler.chip import align_up

_LINE = 64
"""Bytes to which it is rounded, as all other memory."""


def apart(model: Bm168xModel, names: Sequence[str], kept: Collection[str]) -> Bm168xModel:
    """See `BModel.apart`."""
    (net,) = model.nets
    nets = [
        Bm168xNet(name, [_io_alone(stage)], IO_ALONE) if name in kept else Bm168xNet(name, [stage])
        for name, stage in zip(names, net.stages, strict=True)
    ]
    return replace(model, nets=nets, neuron_size=0)


def _io_alone(stage: Bm168xStage) -> Bm168xStage:
    """The same program: inputs and outputs lie first in its memory and share nothing, so it is cut behind them."""
    tensors = [*stage.inputs, *stage.outputs]
    size = align_up(max(tensor.address + tensor.size for tensor in tensors) - stage.ctx_address, _LINE)
    return replace(
        stage,
        io_address=stage.ctx_address,
        io_size=size,
        ctx_address=stage.ctx_address + size,
        ctx_size=max(0, stage.ctx_size - size),
    )
