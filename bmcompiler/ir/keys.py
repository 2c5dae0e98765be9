"""Names that passes, code generation and files agree upon: ops that all of them know, and notes on ops and functions.

A note is an attribute with a dot in its name: every op may carry it, and passes hand it on. Notes of one chip have
their names in its backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.ir.core import Operation, Value

DIALECT = "tensorop."
"""What the names of TensorOps begin with, and in text the attributes of functions and modules."""
WEIGHT = DIALECT + "weight"
"""The op that brings a constant of the net."""
RETURN = "func.return"
"""The last op of a function."""
FUNCTION, MODULE = "func.func", "builtin.module"

TENSOR_NAME = "source.tensor"
"""Note: the name in the source file of the value that the op makes (a tuple for several results)."""
LAYER_NAME = "quantize.layer"
"""Note: the tensor that quantization tables know the op by, where its result is no longer that tensor."""
PLACE_CPU = "place.cpu"
"""Note: keeps the op on the host CPU; its value is the reason."""
REFUSED = "place.refused"
"""Note on an op without a kernel: why the target refused what could have stood for it."""
FLOAT_NOTE = "quantize.float"
"""Note on an op that stays in float: why. It says nothing about where the op runs."""
MODE_NOTE = "quantize.mode"
"""Note on an integer op whose attributes do not say it: the mode of quantization that it was written for."""
THRESHOLD = "calib.threshold"
"""Note: the threshold of the result (a tuple for several results; 0 for results that are not float)."""
THRESHOLD_SOURCE = "calib.source"
"""Note: "table" where a table named the thresholds of the results, absent where they were measured or derived."""
LARGE = "calib.large"
"""Note on a float op of an integer net: a threshold of its results where f16 might not hold them."""
WIDE = "numeric.wide"
"""Note on a float op: it is for differences that 16-bit floats have not, so it stays f32."""
EXACT = "numeric.exact"
"""Note on a float op: why bytes do not hold its numbers, so it stays in float."""
HALF = "numeric.half"
"""Note on a float op: the 16-bit float type that holds its numbers where that of the net does not."""
WEIGHT_SHIFT = "quantize.weight_shift"
"""Note on a layer: the right shift its integer weights must have."""
TOWARDS_ZERO = "quantize.towards_zero"
"""Note on a function of one tensor: integers of its results are cut where others are rounded, as by the vendor."""
INTEGER_WEIGHTS = "integer_weights"
"""On a function: its weights were integers in the source, made by the table, whose thresholds are all kept."""
GROUP, SLICES = "codegen.group", "codegen.slices"
"""Notes on the ops of a group of layers: its number, and into how many parts it is cut along n, c, h and w."""
IMAGE = "codegen.image"
"""Note on the ops that compute one image of a batch, or a few, by themselves: the number of that part."""
IMAGE_ROWS = "codegen.image_rows"
"""Note on a product of all rows by constants: of how many an image in local memory is, which others read so."""
MACS = "codegen.macs"
"""Note on an op that does not compute what its layers need: their multiply-accumulates. Read with `Operation.macs`."""
OFFSET = "bmodel.offset"
"""Note on a weight op in a CPU subnet: its offset from the weight base."""
PALETTE = "quant.palette"
"""Note on a constant that comes from a table: the size of the table."""

INPUT_THRESHOLDS = "input_thresholds"
"""On a function: one threshold per input, 0 for inputs that are not float."""
INPUT_RANGES = "input_ranges"
"""On a module: what its model file is to say of the values of the inputs (`bmcompiler.inputs.ranges`), which saved IR
would not tell any more: samples are gone, norms folded."""
INPUT_PICTURES = "input_pictures"
"""On a module: how pictures become its input, in the words of a model file (`bmcompiler.inputs.preprocessing`)."""
STATED_NAMES, STATED = "stated_tensors", "stated_thresholds"
STATED_TYPES, STATED_SCALES, STATED_ZEROS = "stated_types", "stated_scales", "stated_zero_points"
"""On a function: tensors whose thresholds the model states, and these thresholds; with element type ("" for several),
scale and zero point of each."""


def is_weight(value: Value) -> bool:
    """Whether a value is a constant of the net."""
    return value.op is not None and value.op.name == WEIGHT


def is_return(op: Operation) -> bool:
    """Whether an op ends its function."""
    return op.name == RETURN
