"""Misuse of BMNet from C: every argument of every function, where builders, ops and layers are right otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from c_programs import SANITIZED, needs_compiler, program, run
from c_walk import Walk, head, steps, strangers

from bmcompiler.bmnet.c_library import LIBRARY

pytestmark = needs_compiler
HERE = Path(__file__).parent
NUMBERS = "-1", "99", "2147483647", "(-2147483647 - 1)"
STRANGE = "0", "7", "(uintptr_t)scratch", "~0ull", "(uintptr_t)builder + 1"
TEXTS = '""', '"no.such"', '"["', '"bottom[99999999999]"', '"\\xff\\xfe"'
ALL = Walk(
    LIBRARY,
    "",
    {
        "builder_t": "builder", "op_t": "op", "layer_t": "layer", "const char *": '"name"', "path_t": '"absent"',
        "name_t": '"name"', "layer_callback_t": "same", "inst_callback_t": "issued", "cpu_callback_t": "computed",
    },
    {
        "builder_t": (*STRANGE, "(uintptr_t)op", "destroyed"),
        "op_t": (*STRANGE, "(uintptr_t)layer", "old_op"),
        "layer_t": (*STRANGE, "(uintptr_t)op", "old_layer"),
        **dict.fromkeys(("layer_callback_t", "inst_callback_t", "cpu_callback_t"), ("NULL",)),
    },
    beside={
        "ver": NUMBERS, "index": NUMBERS, "axis": NUMBERS, "opt": NUMBERS, "dim": ("0", "-1"),
        **dict.fromkeys("nchw", ("0", "-1", "2147483647", "(-2147483647 - 1)")),
        **dict.fromkeys(("layer_name", "inst_name", "sub_type", "name", "net_name"), ('""', '"\\xff"')), "field": TEXTS,
        "dst": ('"/nowhere/x"', '""', '"/"'), "caffemodel": ('""',),
        "plugin_path": ('"/nowhere/x"', '"/"', '"/dev/null"'),
    },
    handles=("builder_t", "op_t", "layer_t"),
    globals="#include <stdlib.h>\nstatic bmnet_builder_t builder, destroyed; static bmnet_op_t op, old_op;"
    "static bmnet_layer_t layer, old_layer; static bmnet_layer_callback_t same; static bmnet_cpu_callback_t computed;"
    "static bmnet_inst_callback_t issued;",
)  # fmt: skip
NAMES = {one.name for one in LIBRARY.prototypes}
WHERE = {
    "builders": {one for one in NAMES if one.startswith(("bmnet_builder", "bmnet_register"))},
    "ops": {one for one in NAMES if one.startswith("bmnet_op")},
    "layers": {one for one in NAMES if one.startswith("bmnet_layer")},
}


@pytest.mark.parametrize("flags", [(), pytest.param(SANITIZED, marks=pytest.mark.sweep)])
def test_every_misuse_of_bmnet_is_refused(
    built: Path, net: tuple[Path, ...], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    parts = "".join(steps(replace(ALL, without=frozenset(NAMES - names)), where) for where, names in WHERE.items())
    parts += f"static void unknown(void) {{ {' '.join(call for _, call in strangers(ALL, begun=True))} }}\n"
    file = tmp_path / "walk_bmnet.c"
    file.write_text(head(ALL, "bmnet.h", "bmruntime.h", "pthread.h") + parts + (HERE / "bmnet_misuse.c").read_text())
    done = run(
        program(built, "bmnet bmruntime", file, "gcc", "-w", "-Wno-error", "-O0", "-pthread", *flags),
        *net,
        tmp_path / "out",
        timeout=60,
    )
    assert done.returncode == 0, (
        done.stdout.decode(errors="replace")[-6000:] + done.stderr.decode(errors="replace")[-500:]
    )
    assert b"Traceback" not in done.stderr and b"fault of the library" not in done.stderr
    assert int(done.stdout.split()[0]) > 800
