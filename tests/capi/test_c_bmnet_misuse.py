"""Misuse of BMNet from C: every argument of every function, where builders, ops and layers are right otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from c_programs import SANITIZED, needs_compiler, program, run
from c_walk import head, steps, strangers
from c_walks import BMNET

pytestmark = needs_compiler
HERE = Path(__file__).parent
NAMES = {one.name for one in BMNET.library.prototypes}
WHERE = {
    "builders": {one for one in NAMES if one.startswith(("bmnet_builder", "bmnet_register"))},
    "ops": {one for one in NAMES if one.startswith("bmnet_op")},
    "layers": {one for one in NAMES if one.startswith("bmnet_layer")},
}


@pytest.mark.parametrize("flags", [(), pytest.param(SANITIZED, marks=pytest.mark.sweep)])
def test_every_misuse_of_bmnet_is_refused(
    built: Path, net: tuple[Path, ...], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    parts = "".join(steps(replace(BMNET, without=frozenset(NAMES - names)), where) for where, names in WHERE.items())
    parts += f"static void unknown(void) {{ {' '.join(call for _, call in strangers(BMNET, begun=True))} }}\n"
    file = tmp_path / "walk_bmnet.c"
    file.write_text(head(BMNET, "bmnet.h", "bmruntime.h", "pthread.h") + parts + (HERE / "bmnet_misuse.c").read_text())
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
