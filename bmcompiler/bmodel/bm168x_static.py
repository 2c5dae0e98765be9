"""The part of a BM168x model that is without dynamic subnets, whose commands only a chip's firmware can make."""

from __future__ import annotations

from dataclasses import replace

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, TpuSubnet
from bmcompiler.errors import UnsupportedError

_OUTPUT = 2  # Bm168xTensor.hidden of an output of the net
_OF_DYNAMIC_STAGES = ("stage_ir", "is_dynamic", "n_dynamic", "h_w_dynamic")


def static_part(model: Bm168xModel) -> Bm168xModel:
    """The nets up to their first dynamic subnet, whose inputs become outputs; nets that begin with one are left out.

    Raises:
        UnsupportedError: nothing is left.
    """
    nets = [replace(net, stages=[_cut(stage) for stage in net.stages]) for net in model.nets if _begins_static(net)]
    if not nets:
        raise UnsupportedError("all nets of the model are dynamic", remedy="compile it without dynamic shapes")
    return replace(model, nets=nets, neuron_size=0)


def _begins_static(net: Bm168xNet) -> bool:
    return all(_static_subnets(stage) for stage in net.stages)


def _static_subnets(stage: Bm168xStage) -> int:
    """How many subnets come before the first dynamic one."""
    dynamic = [isinstance(subnet, TpuSubnet) and subnet.dynamic for subnet in stage.subnets]
    return dynamic.index(True) if True in dynamic else len(dynamic)


def _cut(stage: Bm168xStage) -> Bm168xStage:
    count = _static_subnets(stage)
    if count == len(stage.subnets):
        return stage
    kept = stage.subnets[:count]
    made = {tensor.name: tensor for subnet in kept for tensor in subnet.outputs}
    wanted = dict.fromkeys(tensor.name for tensor in (*stage.outputs, *stage.subnets[count].inputs))
    outputs = [
        replace(made[name], hidden=_OUTPUT, index=index)
        for index, name in enumerate(name for name in wanted if name in made)
    ]
    source = {key: value for key, value in stage.source.items() if key not in _OF_DYNAMIC_STAGES}
    subnets = [*kept[:-1], replace(kept[-1], next=[-1])]
    return replace(stage, outputs=outputs, subnets=subnets, intermediate=b"", source=source)
