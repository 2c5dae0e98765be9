"""Faults that are none: what they make is right, too. Each was looked at; the reason says why no test can find it.

Harmless means: for every program that the compiler can make and every state that a chip can be in, the broken code
gives the same bytes, the same answers and the same refusals as the right one, or, of two plans that are estimated to
take equally long, the other one. That no test finds it proves nothing. The proof is the reason: a fact that holds by
construction, which a reader can check in the code around the statement (a divisor, one image, a sum's operands), never
"not seen". Where the fact makes a part of the code superfluous that part is deleted instead, and where it is a rule of
somebody else, as of the verifier, his test has to hold it. Two kinds are proven by machine: a division that leaves no
remainder in any test (`asking.whole_divisions`), and names of guesses below. A line goes with its statement: its
name is made of the statement's text, and a test refuses names of statements that are gone.

`GUESSED` is the one rule, of numbers that are guesses: how much numpy works on at once decides what fits a cache and no
bit, and from how many elements on a damaged command is refused decides nothing for real ones.
"""

import re

HARMLESS: dict[str, str] = {
    "backends.bm1684.instructions.words:3ca0d76abbde": "behind what is free are constants, which nothing writes",
    "backends.bm1684.instructions.words:c774917397e2": "tables have 256 entries, a multiple of the units",
    "backends.bm1684.packed.bands:9cb9b00f30d7": "of two ways that are estimated alike either is as good",
    "backends.bm1684.packed.channel_end:0d95afeca5e2": "the operands of a sum, of which either may come first",
    "backends.bm1684.packed.conv_int:4d2a07e59d8a": "the limit is a guess: a bias may be loaded with more, too",
    "backends.bm1684.packed.int_elementwise:9f08316d669e": "a lookup takes the same steps whichever the table",
    "backends.bm1684.packed.int_elementwise:d83d8a0e43f3": "strides of a local tensor do not depend on its images",
    "backends.bm1684.packed.int_elementwise:df28b9b87bda": "a lookup takes the same steps whichever the table",
    "backends.bm1684.packed.int_matrix:43cfffbfd037": "sections are whole words wide",
    "backends.bm1684.packed.int_matrix:bb6bb4f65766": "0 has no sign, and a maximum never saturates",
    "backends.bm1684.packed.int_recipes:01ad4519ed8b": "all multipliers are even where they are halved",
    "backends.bm1684.packed.lut_softmax:05e164f352ca": "a lookup takes the same steps whichever the table",
    "backends.bm1684.packed.lut_softmax:87ae3f1fdaea": "a lookup takes the same steps whichever the table",
    "backends.bm1684.packed.quantize_bands:54a8dea679fa": "ends that are one are those of a lane: no part is left",
    "backends.bm1684.row_products:57c2b105e6da": "of two ways that are estimated alike either is as good",
    "backends.bm1684x.instructions.window:23095626158c": "INT8 is code 0, which fields have that nobody states",
    "backends.bm1684x.kernels.indexed.computed_places:b1935d13e7a9": "below 2**30 rows either shift leaves the sign",
    "backends.bm1684x.kernels.halves:4a0f4a6a74ca": "two types are never all three that the machine has",
    "backends.bm1684x.kernels.int_pool:6ce34dfdc767": "255 * 255 does not divide 2**31, so it is never met",
    "backends.bm1684x.kernels.ranked:d2cee5951cbc": "at the bound itself both choices have the same bits",
    "backends.bm1684x.kernels.row_products:240ab3ce019f": "of two ways that are estimated alike either is as good",
    "backends.bm1684x.kernels.indexed.scattered_rows:16409ab235a8": "runs count from the last axis, not by the first",
    "backends.bm1684x.kernels.indexed.scattered_rows:27e0e573bc5c": "runs count from the last axis, not by the first",
    "backends.bm1684x.kernels.indexed.scattered_rows:7105f05408ba": "of one image's shape the first is read by none",
    "backends.bm1684x.kernels.indexed.scattered_rows:caffe2559e2d": "of one image's shape the first is read by none",
    "backends.bm1684x.tpukernel.scalars:c71d3ccc0c3d": "powers of two have the same bits with either exponent",
    "backends.bm1684x.tpukernel.types:8b08b78f257f": "12 has no bit that the mask takes away: 6 either way",
    "backends.bm1684x.tpukernel.types:e84b71dbb3f5": "0 is never too large for a float",
    "backends.bm1880.kernels.base:d6c984d89bf1": "of views that take equally long either is as good",
    "backends.bm1880.kernels.layout:1ecf549bbbc4": "no step is 0, which the verifier refuses",
    "backends.bm1880.kernels.layout:2ac9f587aeb7": "4096 rows of 16 bytes fill a lane, which has to hold results, too",
    "backends.bm1880.kernels.mac_shift:f0990a19b92e": "32767 is no multiple of 128",
    "backends.dv.driver.geometry:cef1b27ebb41": "nothing is divided by 0, which raises either way",
    "backends.dv.kernels.maps:22c11e02fd35": "what is not said to keep its bits is marked unrounded, as a maximum is",
    "backends.dv.kernels.pointwise:9053321ae804": "of two forms of one size either has the same numbers",
    "backends.dv.lowering.parts:05f2c541649c": "of two formats of one size either has the same numbers",
    "backends.lanes.kernels.channel_constants:f91a33c3f3d8": "runs without gaps: either way loads the same bytes",
    "backends.lanes.kernels.moves.interleave:6aba9915a30d": "of two ways that are estimated alike either is as good",
    "backends.lanes.kernels.moves.resample:fb0a9981cca4": "of two ways that are estimated alike either is as good",
    "backends.lanes.kernels.moves.slots:09dd322a2518": "the largest size is odd, four slots times a width are not",
    "backends.lanes.kernels.moves.transposed_map:008d4b2cd7c3": "the lanes are chosen as a divisor of the pixels",
    "backends.lanes.recipes.evaluation:72283fe56d17": "a window is as wide as the tensor, or has one column",
    "backends.lanes.recipes.evaluation:cb98ba28dcde": "a shift by 0 is none to either side",
    "backends.lanes.recipes.exponential:e9c0ae68b1f6": "powers end at 0, 20, 80 or 88.99999, never at the bound itself",
    "codegen.band_rows:c1ac90852cab": "no move begins where another one does",
    "codegen.groups.ahead:ace2a592db80": "the part of a lane is a guess",
    "codegen.groups.refine:19a6e0ad3655": "what is tried again costs what it cost: only time is lost",
    "codegen.memory:093e0d2fbc1a": "a draw that is just the bound is as likely as any",
    "codegen.schedule:1b3a71cdb2d3": "local memory and all sizes in it are whole multiples of the alignment",
    "numeric.blas:63e493b25ad7": "one thread that is set to one is one",
    "numeric.blas:a5f436d56b9e": "one thread that is set to one is one",
    "numeric.blas:ab65a5672863": "one thread that is set to one is one",
    "numeric.blas:b283a7dfd488": "one thread that is set to one is one",
    "numeric.floats:04fe3df4e3b1": "a table of all values gives what they give themselves",
    "numeric.fp32:08cb4ed0c11c": "the exponent of 0 is 0 either way",
    "numeric.fp32:0eee9df00f79": "elements at a time, which decides what fits a cache and no bit",
    "numeric.fp32:19448340f3be": "at the bound itself both ways give the same bits",
    "numeric.fp32:2761866355b9": "at the bound itself both ways give the same bits",
    "numeric.fused:035f492a8183": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:0638ed219128": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:1fcec049f34f": "the way for rare products gives the same for all, only slower",
    "numeric.fused:26a7c73ec529": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:3b6d54919977": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:3ef998478255": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:4de2c52d2661": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:56e705037eaa": "where no product of a group is the largest all are 0, and 0 times anything is 0",
    "numeric.fused:5b6ebc010ddf": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:dae3744a3571": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:e7bf6728faa7": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:eb4f56394367": "sizes of blocks that are added one by one: whatever fits is right",
    "numeric.fused:f8ecf721ac91": "the way for rare products gives the same for all, only slower",
    "numeric.half_products:dfef586d4dc1": "at the bound itself both ways are exact",
    "numeric.halves:226d9d637cb0": "at the bound itself the bits are those of -0, which is a number",
    "numeric.narrowing:6aa98ff07062": "at the bound itself, 2**-14, both ways give the same bits",
    "numeric.narrowing:6c71aed74bd3": "at the bound itself, 2**-14, both ways give the same bits",
    "numeric.narrowing:90123b831cd5": "-0 stays 0 with what is added below the last bit",
    "numeric.narrowing:c065cafdafd2": "only magnitudes above it are changed",
    "numeric.ordered:9dceccc5d467": "blocks of rows that are added in their turn, however many",
    "numeric.quant_modes:6b70f921cdbe": "the residual is positive, where both roundings are one",
    "numeric.rounding:b84e50a7b834": "the way for wide shifts gives the same for all, only slower",
    "numeric.rounding:e33ce22e0222": "a shift by all bits leaves 0 either way",
    "passes.quantization.conversions.elementwise:b1b3d0032ba4": "what is repeated is 1 or the whole",
    "passes.quantization.scale.lowering:aefbf3550f09": "0 is the same with either sign",
    "passes.quantization.shift.lowering:88c9671f5f1d": "0 times any limit is 0",
    "passes.quantization.shift.lowering:defa8f3da9be": "0 times any limit is 0",
    "passes.support.decompositions.layout:3d654bead5df": "index 0 is inside and asks for no source",
    "passes.support.decompositions.layout:8edc8ced23f1": "index 0 is inside and asks for no source",
    "passes.support.decompositions.pooling:ab632ca883d7": "the inner length is a divisor",
    "runtime.simulator.bm1684.windows:6b904776caa8": "what else becomes 0 is 0",
    "runtime.simulator.bm1684.windows:6cae340d4c5a": "no area has a multiplier that is just 255",
    "runtime.simulator.bm1684x.cube.requant:59587b63dc03": "only the check of the precision is wanted, not the type",
    "runtime.simulator.bm1684x.vector.access:25d9c9a76b98": "copies where no copy is needed, with the same numbers",
    "runtime.simulator.bm1684x.vector.rows:517f1d755fbb": "a table of rows has one image, the first and the last",
    "runtime.simulator.bm1880.decoded:398b6e03449c": "a table with more entries than engines: nobody reads the last",
    "runtime.simulator.boxes:487d14244682": "a box of no groups is left out by its size, too",
    "runtime.simulator.dv.cost:c7fb91cc294c": "a profile whose multipliers are no whole blocks is refused before",
    "runtime.simulator.sections:665bec63ce15": "one block concatenated with nothing is that block",
    "runtime.simulator.trace:c1db27cf764e": "the name of a process belongs to no track",
}
GUESSED: dict[str, tuple[str, ...]] = {
    "backends.bm1684x.half_arithmetic": ("_GATHERED",),
    "backends.dv.arithmetic.accumulate": ("_PATCH_ELEMENTS", "_ROW_ELEMENTS"),
    "backends.lanes.window_sums": ("_GATHERED",),
    "numeric.arith": ("_COLUMN_BLOCK_VALUES",),
    "numeric.half_products": ("_CHUNK", "_VALUES", "_MOST_UNCERTAIN"),
    "numeric.ordered": ("_BLOCK", "_INNER", "_LONG"),
    "numeric.sampled": ("_VALUES",),
    "runtime.simulator.bm1684x.cube.conv": ("_GATHERED",),
    "runtime.simulator.bm1880.windows": ("MAX_ELEMENTS",),
    "runtime.simulator.bm1684x.operands": ("work.value",),
    "runtime.simulator.memory": ("MAX_ELEMENTS",),
    "runtime.simulator.races": ("_CHUNK", "_MAX_RUNS"),
}
"""Names of such numbers by module: no fault is made in a statement that has one."""


def is_harmless(place: str, statement: str) -> bool:
    """Whether a fault of this name, in this statement, is none."""
    names = GUESSED.get(place.partition(":")[0], ())
    return place in HARMLESS or any(re.search(rf"\b{name}\b", statement) for name in names)
