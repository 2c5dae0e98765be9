"""Do int8 programs keep the tasks of trained networks? check_tasks.py [CHIP...] [--nets NAME...] [--all]

Compiles with the default options and 32 calibration samples, runs the samples of the task in the simulator, prints the
scores (0 to 100), and fails when one is too far below float32 or below docs/accuracy.md. Without options: the networks
that are quick. `accuracy.py --write` makes the table of the page.
"""

from __future__ import annotations

import argparse
import sys
import time

from tasks import reference, table
from tasks.measure import compiled
from tasks.networks import NETWORKS

QUICK = ("lenet", "resnet8", "mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "ppocr_v2_cls", "blazeface_front")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*table.CHIPS, []], metavar="CHIP", help="default: all")
    parser.add_argument("--nets", nargs="+", choices=NETWORKS, metavar="NAME", help=f"default: {' '.join(QUICK)}")
    parser.add_argument("--all", action="store_true", help="all twelve networks")
    given = parser.parse_args()
    page, wrong = table.kept(), []
    print(f"{'network':16} {'chip':8} float32  int8  {table.PAGE.name}     compiled", flush=True)
    for name in NETWORKS if given.all else given.nets or QUICK:
        net = NETWORKS[name]
        if not net.there:
            wrong.append(f"{name} is not fetched: run `make models`")
            continue
        float32 = net.metric(reference.float32(net)) * 100
        for chip in given.chips or table.CHIPS:
            program = compiled(net, chip)
            score = net.metric(program.run) * 100
            before, low = page[name].get(chip), not table.keeps(chip, score, float32)
            numbers = f"{float32:7.1f} {score:5.1f} {'-' if before is None else before:>12} {program.seconds:10.1f} s"
            known = f"  more than {table.MAY_LOSE[chip]} points below float32" if low else ""
            print(f"{name:16} {chip:8} {numbers}{known}", flush=True)
            wrong += table.complaints(name, chip, score, float32, before)
    print(f"{time.process_time():.0f} s of CPU")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
