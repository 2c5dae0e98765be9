"""Nets of several models in one, and programs of one model as nets of their own (bm1684x-llm.md 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from bmcompiler.bmodel.bm168x import IO_ALONE, Bm168xModel, Bm168xNet, Bm168xStage, mode_name
from bmcompiler.bmodel.model import BModel
from bmcompiler.chip import align_up
from bmcompiler.errors import UnsupportedError

_LINE = 64
"""Bytes to which it is rounded, as all other memory."""


def combined(first: Bm168xModel, others: Iterable[BModel], name: str | None) -> Bm168xModel:
    """One model with the nets of all; stages of nets of one name join it. With `name` all become that net.

    Raises:
        UnsupportedError: another kind of file or chip, or a net has one set of input shapes twice.
    """
    nets: dict[str, Bm168xNet] = {}
    for model in (first, *others):
        if not isinstance(model, Bm168xModel) or model.chip != first.chip:
            raise UnsupportedError(
                f"models of different chips ({first.target}, {model.target}) cannot share a file",
                remedy="compile both for the same target",
            )
        for net in model.nets:
            known = nets.setdefault(name or net.name, replace(net, name=name or net.name, stages=[]))
            if known.address_mode != net.address_mode:
                raise UnsupportedError(
                    f"stages of net {known.name!r} have the address modes {mode_name(known.address_mode)} and "
                    f"{mode_name(net.address_mode)}, of which a net has one",
                    remedy="give the nets different names",
                )
            known.stages.extend(net.stages)
    for net in nets.values():
        _refuse_equal_shapes(net)
    return replace(first, nets=list(nets.values()), neuron_size=0)


def _refuse_equal_shapes(net: Bm168xNet) -> None:
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for stage in net.stages:
        shapes = tuple(tensor.shape for tensor in stage.inputs)
        if shapes in seen:
            text = ", ".join(str(list(shape)) for shape in shapes)
            raise UnsupportedError(
                f"input shape {text} occurs twice in net {net.name!r}",
                remedy="combine files compiled for different shapes, or give the nets different names",
            )
        seen.add(shapes)


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
