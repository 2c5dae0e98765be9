"""The timing model of the BM1684 against kernels timed on real chips: python benchmarks/silicon.py [FILE.npz]

Replays recorded command lists (format: `bmcompiler.runtime.simulator.bm1684.recorded`) and prints for every case the
estimate of its fastest kernel, the time measured, and how far they are apart. Launch by hand and issue of commands are
added to the engines' time here: programs of a model file have neither.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from bmcompiler.analysis.timing_profile import OPTION, profile_for
from bmcompiler.backends.bm1684.timing_profile import PROFILE
from bmcompiler.runtime.simulator.bm1684.recorded import BY_HAND, compare

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "data" / "bm1684_timing.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description="Estimates against kernels timed on BM1684 chips.")
    parser.add_argument("file", nargs="?", type=Path, default=RECORDED, help=f"default: {RECORDED.name} of the tests")
    parser.add_argument(OPTION, dest="profile", action="append", default=[], metavar="NAME|FILE.json|KEY=VALUE,...")
    given = parser.parse_args()
    profile = profile_for("bm1684", given.profile) or PROFILE
    cases = compare(given.file, profile)
    if not cases:
        parser.error(f"{given.file} has no cases")
    print(*profile.assumptions(), sep="\n")
    launches = ", ".join(f"{op} {us:g}" for op, us in BY_HAND.launch.items())
    issue = f"a command {BY_HAND.issue:g} us and {BY_HAND.instruction:g} for each instruction"
    print(f"by hand only: launch in us: {launches}; {issue}\n")
    print(f"{'case':14} {'kernel':16} {'estimate us':>12} {'measured us':>12} {'estimate/measured':>18}")
    for one in cases:
        ratio = f"{one.estimate / one.measured:17.2f}x"
        print(f"{one.op + ' ' + str(one.case):14} {one.kernel:16} {one.estimate:12.1f} {one.measured:12.1f} {ratio}")
    errors = [one.error for one in cases]
    print(f"median {median(errors):.2f}x, worst {max(errors):.2f}x over {len(errors)} cases")


if __name__ == "__main__":
    main()
