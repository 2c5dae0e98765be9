"""A folder with a Python of its own: moved, it runs without that of the user, whatever the user's variables say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from c_programs import needs_compiler
from test_c_linking import LOCAL

from bmcompiler.capi.build import build
from bmcompiler.capi.own_python import FOLDER, copy_python
from bmcompiler.errors import UsageError


def test_what_lies_in_its_place_stays(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "mine.py").write_text("")
    with pytest.raises(UsageError, match="something that was not made by this command"):
        copy_python(tmp_path)
    assert (tmp_path / FOLDER / "mine.py").exists()


MAPS = """
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (maps && fgets(line, sizeof line, maps))
        fputs(line, stdout);
    return 0;
}
"""


@needs_compiler
@pytest.mark.sweep
def test_a_moved_folder_needs_no_other_python(tmp_path: Path) -> None:
    build(tmp_path / "made", "gcc", own_python=True)
    (tmp_path / "made").rename(tmp_path / "moved")
    source, binary = LOCAL[: LOCAL.rindex("    return 0;")] + MAPS, tmp_path / "opener"
    subprocess.run(["gcc", "-x", "c", "-", "-o", binary, "-ldl"], input=source, text=True, check=True)
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')\n")
    command = [binary, tmp_path / "moved" / "lib" / "libbmruntime.so"]
    for variables in ({}, {"PYTHONHOME": str(tmp_path), "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done
        files = {line.split()[-1] for line in done.stdout.splitlines() if "/" in line}
        assert any("moved/python/lib/python3" in file for file in files)
        assert not [file for file in files if file.startswith((sys.prefix, sys.base_prefix)) and "lib" in file]
