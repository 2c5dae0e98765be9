"""Faults that are none: what they make is right, too. Each was looked at; the reason says why no test can find it."""

HARMLESS: dict[str, str] = {
    "backends.bm1684.instructions.words:c774917397e2": "tables have 256 entries, a multiple of the units",
    "backends.bm1684.packed.int_elementwise:d83d8a0e43f3": "strides of a local tensor do not depend on its images",
    "backends.bm1684x.half_arithmetic:44a30fe646c5": "rows at a time, which decides what fits a cache and no bit",
    "backends.bm1684x.instructions.window:23095626158c": "INT8 is code 0, which fields have that nobody states",
    "backends.bm1684x.kernels.table_rows:8001821b64f2": "an array of one image: its stride is never taken",
    "backends.bm1880.cmdbuf:a314a3ca456b": "numpy takes any negative size for the one that it finds itself",
    "backends.dv.kernels.concat:c0051697115a": "operands of a concat have as many dimensions as each other",
    "backends.dv.kernels.fc:45e6c1d45178": "of two forms of one size that give the same numbers either may be taken",
    "backends.lanes.kernels.moves.slots:09dd322a2518": "the largest size is odd, four slots times a width are not",
    "codegen.groups.choose:f3c5211eb682": "the limit is a guess: exactly there either choice is as good",
    "numeric.factors:fb78248cd213": "at the bound itself both ways give the same bits",
    "numeric.fused:f8ecf721ac91": "the way for rare products gives the same for all, only slower",
    "numeric.half_products:7d7bad1cdbac": "products at a time, which decides what is quicker and no bit",
    "numeric.ordered:1fe3ed3b22e5": "products at a time, which decides what fits a cache and no bit",
    "numeric.quant_modes:6b70f921cdbe": "the residual is positive, where both roundings are one",
    "runtime.simulator.bm1684x.cube.requant:59587b63dc03": "only the check of the precision is wanted, not the type",
    "runtime.simulator.bm1684x.vector.access:25d9c9a76b98": "copies where no copy is needed, with the same numbers",
    "runtime.simulator.dv.cost:c7fb91cc294c": "a profile whose multipliers are no whole blocks is refused before",
    "runtime.simulator.sections:665bec63ce15": "one block concatenated with nothing is that block",
    "runtime.simulator.trace:c1db27cf764e": "the name of a process belongs to no track",
}
