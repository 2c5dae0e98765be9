"""DMP DV700 family: command structures, limits, weight packing, buffer formulas and arithmetic.

Everything here is a pure function or a table. A compiler asks it what fits, the driver API and the simulator refuse by
the same rules. Facts and evidence: hardware/dv.md, cited as "dv.md N".
"""
