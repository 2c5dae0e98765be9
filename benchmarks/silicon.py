"""Timing models against real chips: python benchmarks/silicon.py [--chip bm1684|bm1684x] [FILE]

BM1684: replays recorded command lists (format: `bmcompiler.runtime.simulator.bm1684.recorded`) of kernels and prints
for every case the estimate of its fastest kernel, the time measured, and how far they are apart. Launch by hand and
issue of commands are added to the engines' time here: programs of a model file have neither.
BM1684X: whole networks on boards; see `board_times`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from board_times import ROWS, boards

from bmcompiler.analysis.timing_profile import profile_for
from bmcompiler.backends.bm1684.timing_profile import TimingProfile as Bm1684Profile
from bmcompiler.backends.bm1684x.timing_profile import TimingProfile
from bmcompiler.runtime.simulator.bm1684.recorded import BY_HAND, compare

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "data" / "bm1684_timing.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description="Estimates against times measured on chips.")
    parser.add_argument("file", nargs="?", type=Path, help="default: what was recorded or published, of the tests")
    parser.add_argument("--chip", choices=("bm1684", "bm1684x"), default="bm1684")
    parser.add_argument(
        "--timing-profile", dest="profile", action="append", default=[], metavar="NAME|FILE.json|KEY=VALUE,..."
    )
    given = parser.parse_args()
    profile = profile_for(given.chip, given.profile or ["silicon"])
    print(*profile.assumptions(), sep="\n")
    if given.chip == "bm1684":
        _kernels(given.file or RECORDED, profile)
    else:
        _networks(given.file or ROWS, profile)


def _networks(file: Path, profile: TimingProfile) -> None:
    rows = boards(profile, file)
    print(f"{'network':14} {'precision':>9} {'batch':>5} {'estimate ms':>12} {'measured ms':>12} {'ratio':>8}")
    for row in rows:
        mark = "" if row.same else "  another program, or a known outlier: not counted"
        times = f"{row.estimate:12.3f} {row.measured:12.3f} {row.ratio:7.2f}x"
        print(f"{row.net:14} {row.precision:>9} {row.batch:5} {times}{mark}")
    for precision in dict.fromkeys(row.precision for row in rows):
        same = [row for row in rows if row.same and row.precision == precision]
        if same:
            near = sum(row.near for row in same)
            print(f"{precision}: {near} of {len(same)} within 1.15x, median {median(row.ratio for row in same):.2f}x")


def _kernels(file: Path, profile: Bm1684Profile) -> None:
    cases = compare(file, profile)
    if not cases:
        raise SystemExit(f"{file} has no cases")
    launches = ", ".join(f"{op} {us:g}" for op, us in BY_HAND.launch.items())
    issue = f"a command {BY_HAND.issue:g} us and {BY_HAND.instruction:g} for each instruction"
    print(f"by hand only: launch in us: {launches}; {issue}\n")
    print(f"{'case':14} {'kernel':16} {'estimate us':>12} {'measured us':>12} {'ratio':>8}")
    for one in cases:
        ratio = f"{one.estimate / one.measured:17.2f}x"
        print(f"{one.op + ' ' + str(one.case):14} {one.kernel:16} {one.estimate:12.1f} {one.measured:12.1f} {ratio}")
    errors = [one.error for one in cases]
    print(f"median {median(errors):.2f}x, worst {max(errors):.2f}x over {len(errors)} cases")


if __name__ == "__main__":
    main()
