"""Faults that are none: what they make is right, too. Each was looked at; the reason says why no test can find it."""

HARMLESS: dict[str, str] = {
    "backends.bm1684.packed.int_elementwise:d83d8a0e43f3": "strides of a local tensor do not depend on its images",
    "backends.bm1684x.instructions.window:23095626158c": "INT8 is code 0, which fields have that nobody states",
    "backends.bm1684x.kernels.table_rows:8001821b64f2": "an array of one image: its stride is never taken",
    "backends.lanes.kernels.moves.slots:09dd322a2518": "the largest size is odd, four slots times a width are not",
    "numeric.quant_modes:6b70f921cdbe": "the residual is positive, where both roundings are one",
    "numeric.ordered:1fe3ed3b22e5": "products at a time, which decides what fits a cache and no bit",
    "runtime.simulator.bm1684x.cube.requant:59587b63dc03": "only the check of the precision is wanted, not the type",
    "runtime.simulator.bm1684x.vector.access:25d9c9a76b98": "copies where no copy is needed, with the same numbers",
    "runtime.simulator.sections:665bec63ce15": "one block concatenated with nothing is that block",
}
