"""A scale for each output channel as a scheme of the pass quantize."""

from __future__ import annotations

from typing import ClassVar

from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.passes.quantization.channel.lowering import ChannelLowering
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.scale.scheme import Scales


class Channels(Scales):
    """i8 and u8 activations as in the scheme "scale", layers in the mode channel."""

    layer_modes = (CHANNEL,)
    lowering: ClassVar[type[ScaleLowering]] = ChannelLowering
