"""How many sources of TPUKernel firmware compile with our tpu_kernel.h, and which functions they miss.

    python tools/check_firmware.py FOLDER ... [--include FOLDER ...]

Takes every C source below the folders that calls a function of TPUKernel. Headers that the sources bring themselves are
found in the folders of --include, behind ours. Needs gcc and nm.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from bmcompiler.capi.build import build

_CALLS = re.compile(r"\btpu_(?:bdc|gdma|hau|initialize|poll|parallel|aligned|npu)\w*\s*\(")


def main() -> None:
    """Compile all; say what fails and why, and how many do not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--include", nargs="*", default=[], type=Path)
    options = parser.parse_args()
    sources = sorted(each for folder in options.folders for each in folder.rglob("*.c") if _calls_library(each))
    compiled, linked, missed = 0, 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "gcc")
        offered = _symbols(Path(folder) / "lib" / "libtpukernel.so", "-D", "--defined-only")
        for source in sources:
            made = Path(folder) / "made.o"
            why = _compiled(source, made, [Path(folder) / "include", *options.include])
            if why:
                print(f"{source}: {why}")
                continue
            compiled += 1
            absent = {name for name in _symbols(made, "-u") if name.startswith("tpu_")} - offered
            linked += not absent
            missed.update(absent)
    print(f"{compiled} of {len(sources)} compile, {linked} of these find every function of the library")
    for name, times in missed.most_common():
        print(f"    {name}: {times}")


def _calls_library(source: Path) -> bool:
    return bool(_CALLS.search(source.read_text(encoding="utf-8", errors="replace")))


def _compiled(source: Path, target: Path, folders: list[Path]) -> str:
    """Compile; the first error, "" without one."""
    include = [f"-I{folder}" for folder in folders]
    command = ["gcc", "-std=gnu11", "-w", "-c", *include, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return errors[0] if errors else "" if done.returncode == 0 else "gcc fails without a word"


def _symbols(file: Path, *flags: str) -> set[str]:
    done = subprocess.run(["nm", *flags, str(file)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


if __name__ == "__main__":
    main()
