"""How work is laid out for the chip once types are final: lanes, bands, parts, runs (phase "layout").

Each rewrite is done where the target says that it takes less time, or that it has what the rewrite is for.
"""
