"""What backends remember in modules depends on no cycles: what does, `LaneMachine.decided` keeps with their table."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGE = "bmcompiler.backends"
BACKENDS = Path(__file__).parents[1] / "backends"
INDEPENDENT = {
    "bm1684.packed.int_recipes._recorded": "which steps are exact: arithmetic alone",
    "bm1684.tables.l2_tables": "contents of static memory",
    "bm1684x.recipe_tables._exp_series": "entries of a table",
    "bm1684x.recipe_tables._integers": "entries of a table",
    "bm1684x.recipe_tables._logarithms": "entries of a table",
    "bm1684x.recipe_tables._powers": "entries of a table",
    "bm1684x.recipe_tables._sine_series": "entries of a table",
    "bm1684x.static_tables._bernoulli": "a number",
    "bm1684x.static_tables.static_memory": "contents of static memory",
    "bm1880.kernels.matmul.window_of": "by bytes of local memory",
    "dv.kernels.maps.steps_of": "fewest steps, whatever they cost",
    "dv.formats.packing.slots": "places in a block",
    "lanes.kernels.functions.broadcast.merged_axes": "axes of shapes",
    "lanes.recipes.activations._sigmoids": "entries of a table",
    "lanes.kernels.sums.interpolate._counts_of": "strips of an index",
}
"""Functions that remember in a module, by name within backends, and why no profile of the timing model changes them."""


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(import_module(PACKAGE).__path__, PACKAGE + ".")
    return [import_module(each.name) for each in found]


def test_caches_in_modules_are_those_that_were_reviewed() -> None:
    found = set()
    for module in _modules():
        holders = [module, *(each for each in vars(module).values() if isinstance(each, type))]
        for holder in holders:
            for member in vars(holder).values():
                if hasattr(member, "cache_info") and member.__module__.startswith(PACKAGE):
                    found.add(f"{member.__module__.removeprefix(PACKAGE + '.')}.{member.__qualname__}")
    assert len(found) > 5, "the walk finds nothing: it would show nothing"
    assert found == set(INDEPENDENT)


def test_no_cache_is_cleared_and_no_module_is_changed_in_backends() -> None:
    for path in BACKENDS.rglob("*.py"):
        text = path.read_text()
        assert "cache_clear" not in text, f"{path}: keep what depends on a compilation with its plan"
        assert not any(line.strip().startswith("global ") for line in text.splitlines()), path
