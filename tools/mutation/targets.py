"""Which modules are broken: those whose faults make wrong programs or wrong answers, by chip and by what they do.

Not here: what only chooses between right programs (estimates of cycles, tile sizes by cost), prints, or checks users'
arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Group:
    """Modules of one kind, as patterns of files; the folders and files of tests that may find their faults."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def modules(self) -> list[str]:
        """Names, sorted."""
        left_out = {path for pattern in self.without for path in ROOT.glob(pattern)}
        found = {path for pattern in self.files for path in ROOT.glob(pattern)} - left_out
        return sorted(module_of(path) for path in found if path.name != "__init__.py")


def module_of(path: Path) -> str:
    """The name under which a file of the checkout is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "bmcompiler" else ("bmcompiler", *parts))


def file_of(module: str) -> Path:
    """The file of a module."""
    parts = module.split(".")
    inside = ROOT.joinpath(*parts).with_suffix(".py")
    return inside if inside.exists() else ROOT.joinpath(*parts[1:]).with_suffix(".py")


def _besides(chip: str, *names: str) -> tuple[str, ...]:
    """Files of a chip that are left out: facts, estimates and texts."""
    return tuple(f"backends/{chip}/{name}.py" for name in names)


PROGRAMS = "tests/test_recorded_programs.py"
"""What a fault of a planner or of a cost changes, which leaves programs right."""
FACTS = ("tests/test_recorded_facts.py", "tests/test_pipelines.py")
"""What a fault of a table changes: of facts, of passes."""
_CYCLES = (
    PROGRAMS,
    *(
        f"tests/test_recorded_{name}.py"
        for name in ("reports", "cycles", "commands", "drawn", "ranks", "numbers", "edges")
    ),
)
_INT8 = ("tests/test_trained_int8.py", "tests/ops/test_element_types.py")
_1880 = ("tests/bm1880", "tests/runtime", "tests/test_kernel_checks.py", *_CYCLES, *_INT8)
_1684 = ("tests/bm1684", "tests/lanes", *_CYCLES, *_INT8)
_1684X = ("tests/bm1684x", "tests/tpukernel", "tests/lanes", *_CYCLES, *_INT8)
_DV = ("tests/dv", *_CYCLES, "tests/ops/test_element_types.py", "tests/passes/test_modified.py")
_ARITHMETIC = "arith blas counted_products factors fused half_products ordered quant_modes rounding"
_NUMBERS = tuple(f"tests/test_{name}.py" for name in _ARITHMETIC.split())
_CORE = (*_1880, *_1684, "tests/bm1684x", *_DV, "tests/codegen")

GROUPS = (
    Group(
        "bm1880 code",
        ("backends/bm1880/*.py", "backends/bm1880/kernels/*.py"),
        _1880,
        _besides("bm1880", "cycles", "chip", "asm"),
    ),
    Group("bm1880 simulator", ("runtime/simulator/bm1880/*.py",), _1880),
    Group(
        "bm1684 code",
        ("backends/bm1684/*.py", "backends/bm1684/instructions/*.py", "backends/bm1684/packed/*.py"),
        _1684,
        _besides("bm1684", "cycles", "chip", "asm", "timing_profile"),
    ),
    Group("bm1684 simulator", ("runtime/simulator/bm1684/*.py",), _1684),
    Group(
        "bm1684x code",
        ("backends/bm1684x/*.py", "backends/bm1684x/instructions/*.py", "backends/bm1684x/kernels/*.py"),
        _1684X,
        _besides("bm1684x", "cycles", "tile_cycles", "chip", "asm", "listing"),
    ),
    Group("bm1684x kernel library", ("backends/bm1684x/tpukernel/*.py",), ("tests/tpukernel",)),
    Group("bm1684x simulator", ("runtime/simulator/bm1684x/*.py", "runtime/simulator/bm1684x/*/*.py"), _1684X),
    Group("dv700 code", ("backends/dv/*.py", "backends/dv/*/*.py"), _DV, _besides("dv", "chip", "listing")),
    Group("dv700 simulator", ("runtime/simulator/dv/*.py",), _DV),
    Group(
        "lanes",
        ("backends/lanes/*.py", "backends/lanes/*/*.py", "backends/lanes/kernels/*/*.py", "backends/bm168x/*.py"),
        (*_1684, "tests/bm1684x"),
        _besides("lanes", "cycles"),
    ),
    Group(
        "common simulator",
        ("runtime/simulator/*.py", "runtime/simulator/bm168x/*.py"),
        (*_CORE, "tests/runtime"),
    ),
    Group(
        "quantization",
        (
            "passes/precision/quantize.py",
            "passes/quantization/*.py",
            "passes/support/decompositions/*.py",
            *(f"passes/quantization/{part}/*.py" for part in ("conversions", "scale", "shift", "channel")),
        ),
        (
            "tests/quant",
            "tests/passes",
            "tests/dv/test_dv_kernels.py",
            "tests/test_trained_int8.py",
            "tests/test_networks.py",
        ),
    ),
    Group("core code", ("bmcompiler/codegen/*.py", "bmcompiler/codegen/groups/*.py"), _CORE),
    Group("numeric", ("bmcompiler/numeric/*.py",), (*_CORE, "tests/ops", "tests/quant", *_NUMBERS)),
)
CORPUS = "tests/corpus/drawn_nets.py"
_WHOLE = (
    "tests/proof",
    *(f"tests/test_{name}.py" for name in ("conditions", "rule_limits", "report", "toy_chip")),
)
ALL_TESTS = tuple(dict.fromkeys([*FACTS, *(folder for group in GROUPS for folder in group.tests), *_WHOLE]))
"""Of all groups: what those of a fault's own group do not find the others may, and small networks of the corpus."""
EVERY_TEST = tuple(
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests").iterdir())
    if path.name != "capi" and (path.is_dir() or path.name.startswith("test_"))
)
"""What all of these pass over is asked of all that reach it: those of commands, files and formats, too.

Not of those of C: address sanitizers take more memory than a broken program may.
"""


ESTIMATE = re.compile(r"(^|[._])(time|cycles|costs?|estimate[sd]?|seconds|bound)$")
"""Functions that only choose between right programs; those of simulators are asked for what they say."""


def asked_about(group: str, function: str) -> bool:
    """Whether a function's faults make something wrong."""
    return "simulator" in group or not ESTIMATE.search(function)


def every_module() -> set[str]:
    """All of all groups."""
    return {module for group in GROUPS for module in group.modules()}
