"""A scale for each output channel as a scheme of the pass quantize.

What a model states of a tensor (`absorb-qdq`) is its format, and nothing else: no wider results, no other scale.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.passes.importing.absorb_qdq import stated_forms
from bmcompiler.passes.precision.calibrate import tensor_names
from bmcompiler.passes.quantization.channel.lowering import ChannelLowering
from bmcompiler.passes.quantization.scale.formats import Format, single
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.scale.scheme import Scales
from bmcompiler.passes.quantization.scheme import Start


class Channels(Scales):
    """i8 and u8 activations as in the scheme "scale", layers in the mode channel."""

    layer_modes = tensor_modes = (CHANNEL,)
    share = 1.0
    lowering: ClassVar[type[ScaleLowering]] = ChannelLowering

    def start(self, start: Start) -> ScaleLowering:
        """See `quantization.scheme.Scheme.start`."""
        self.stated = stated_formats(start.function)
        low = super().start(replace(start, exact=start.exact | set(self.stated)))
        assert isinstance(low, ChannelLowering), "the scheme made it"
        low.state(self.stated)
        return low

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """As in "scale", but for results with a stated format."""
        before = set(self.wide)
        super().widen(function, accepted)
        self.wide -= set(self.stated)
        return self.wide != before


def stated_formats(function: Function) -> dict[Value, Format]:
    """The formats of bytes that the model states; of values that share a layer's name, its last is meant."""
    forms = {name: form for name, form in stated_forms(function).items() if form[0] in ("i8", "u8")}
    if not forms:
        return {}
    known = tensor_names(function)
    named = {name: value for value, names in known.items() for name in names[1:]}
    named |= {names[0]: value for value, names in known.items()}
    return {
        named[name]: Format(dtype, single(scale), zero) for name, (dtype, scale, zero) in forms.items() if name in named
    }
