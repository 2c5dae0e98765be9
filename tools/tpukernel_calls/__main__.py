"""Record calls of TPUKernel with drawn arguments on the vendor's C model: tests/data/tpukernel_calls.npz.

    python -m tpukernel_calls FOLDER [--calls N] [NAME ...]
    python -m tpukernel_calls FOLDER --kernels      # whole kernels: tests/data/tpukernel_kernels.npz

FOLDER holds libcmodel_bm1684x.so (of the wheel tpu_mlir). Without names all functions are recorded that
tpukernel_golden.npz lacks; with names those, beside what is recorded of others. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from bmcompiler.backends.bm168x.calls import bound
from bmcompiler.backends.bm1684x.tpukernel.arguments import converted
from bmcompiler.backends.bm1684x.tpukernel.rows import Function, Known
from bmcompiler.errors import BMError
from bmcompiler.tpukernel import FUNCTIONS, TABLE, recording
from tpukernel_calls.calls import KERNELS as PATH_OF_KERNELS
from tpukernel_calls.calls import Call, read, write
from tpukernel_calls.draw import drawn
from tpukernel_calls.memory import GLOBAL_BYTES, fill, place
from tpukernel_calls.vendor import Recorded, Vendor

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "tpukernel"))

from firmware_kernels import KERNELS, inputs

_LOADED = "TPUKERNEL_CALLS_LOADED"
_TRIES, _REFUSALS = 4000, 25
_CALLS = 4


def main() -> None:
    """Start again with `taken.c` loaded before everything else, then record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--calls", type=int, default=_CALLS)
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    if _LOADED not in os.environ:
        _again()
    vendor = Vendor(options.folder, GLOBAL_BYTES)
    if options.kernels:
        write([_kernel(vendor, each) for each in KERNELS], PATH_OF_KERNELS)
        return
    names = options.names or [row.name for row in TABLE.values() if row.source is Known.DRAWN]
    kept = [call for call in read() if call.name not in names] if options.names else []
    order = {name: number for number, name in enumerate(TABLE)}
    for name in names:
        kept += _recorded(vendor, TABLE[name], options.calls)
        write(sorted(kept, key=lambda call: order[call.name]))


def _kernel(vendor: Vendor, kernel: Callable[[Any], None]) -> Call:
    found = vendor.kernel(kernel, lambda memory: place(memory, inputs(kernel)))
    if not isinstance(found, Recorded):
        raise SystemExit(f"{kernel.__name__}: {found}")
    print(kernel.__name__, len(found.commands), flush=True)
    return Call(kernel.__name__, [], 0, *found)


def _again() -> None:
    source = Path(__file__).with_name("taken.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "taken.so"
        flags = ("-O2", "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all")
        subprocess.run(["cc", *flags, "-o", str(library), str(source)], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), _LOADED: "1"}
        done = subprocess.run([sys.executable, "-m", "tpukernel_calls", *sys.argv[1:]], env=environment, check=False)
    raise SystemExit(done.returncode)


def _recorded(vendor: Vendor, row: Function, wanted: int) -> list[Call]:
    """So many calls that both libraries take; what only the vendor's refuses is counted and said."""
    found: list[Call] = []
    rng, refused = Random(row.name), Counter[str]()
    for seed in range(_TRIES):
        given = drawn(rng, row)
        values = bound(row, (), given, converted)
        if not _taken(row, given):
            continue
        answer = vendor.run(row.name, list(given.values()), partial(fill, row=row, a=values, seed=seed))
        if isinstance(answer, Recorded):
            found.append(Call(row.name, [_plain(each) for each in given.values()], seed, *answer))
        else:
            refused[answer] += 1
        if len(found) == wanted or refused.total() == _REFUSALS:
            break
    print(row.name, len(found), *(f"\n    refused {count}: {why}" for why, count in refused.items()), flush=True)
    return found


def _taken(row: Function, given: dict[str, Any]) -> bool:
    try:
        with recording("measured"):
            FUNCTIONS[row.name](**given)
    except BMError:
        return False
    return True


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, (float, bool)) or value is None else int(value)


if __name__ == "__main__":
    main()
