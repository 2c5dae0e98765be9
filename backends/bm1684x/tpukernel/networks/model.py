"""A kernel's program as a model file: inputs and outputs are named places in global memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.kernel import Program
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, Bm168xTensor, TpuSubnet
from bmcompiler.errors import UsageError

_INPUT, _OUTPUT = 1, 2
_NAMES = {
    data_type_t.DT_UINT8: "uint8",
    data_type_t.DT_INT8: "int8",
    data_type_t.DT_FP16: "float16",
    data_type_t.DT_FP32: "float32",
    data_type_t.DT_UINT16: "uint16",
    data_type_t.DT_INT16: "int16",
    data_type_t.DT_UINT32: "uint32",
    data_type_t.DT_INT32: "int32",
    data_type_t.DT_BFP16: "uint16",  # numpy has no such type: the bits
}


class Placed(NamedTuple):
    """An array without gaps in global memory."""

    address: int
    shape: tuple[int, ...]
    dtype: data_type_t = data_type_t.DT_FP32


def model_of(
    program: Program, inputs: Mapping[str, Placed], outputs: Mapping[str, Placed], global_bytes: int = 0
) -> Bm168xModel:
    """A model file with the program as its only stage; `bmcompiler.bmodel.save` writes it, `Session` runs it.

    Args:
        program: what a kernel issued.
        inputs, outputs: by name; at least one of each.
        global_bytes: of global memory that the kernel uses, from its first address on; at least up to the last of its
            inputs and outputs.

    Raises:
        UsageError: there is no input or output, one lies outside of global memory, or the program sorts.
    """
    if not inputs or not outputs:
        raise UsageError(f"a model of {program.name} needs an input and an output")
    program.need_streams()
    tensors = {
        kind: [_tensor(name, placed, kind, index) for index, (name, placed) in enumerate(found.items())]
        for kind, found in ((_INPUT, inputs), (_OUTPUT, outputs))
    }
    both = (tensors[_INPUT], tensors[_OUTPUT])
    size = max([global_bytes, *(each.address + each.size - CHIP.global_base for found in both for each in found)])
    stage = Bm168xStage(
        *both,
        ctx_address=CHIP.global_base,
        ctx_size=size,
        subnets=[TpuSubnet(list(program.groups), *both)],
        coeff_address=CHIP.global_base,
        layers=program.layers(),
    )
    return Bm168xModel([Bm168xNet(program.name, [stage])], chip="BM1684X")


def _tensor(name: str, placed: Placed, kind: int, index: int) -> Bm168xTensor:
    address, shape, dtype = placed
    if address < CHIP.global_base or dtype not in _NAMES:
        raise UsageError(f"{name} is no array in global memory: {placed}")
    return Bm168xTensor(name, _NAMES[dtype], tuple(shape), address, hidden=kind, index=index)
