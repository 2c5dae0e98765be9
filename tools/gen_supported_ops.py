"""Write SUPPORTED_OPS.md: source op -> TensorOps -> where each target runs them; `make docs` calls it.

    python tools/gen_supported_ops.py [--check]

Nothing in the file is kept by hand. ONNX ops: the node cases of the installed onnx package are imported. Caffe layers:
the layer tests of this project run, and every conversion in them is recorded. What comes out is canonicalized and put
to the target op by op, as the pipeline does. `--check` writes nothing and exits 1 when the file is not current.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "SUPPORTED_OPS.md"


def main() -> int:
    parser = argparse.ArgumentParser(description="generate SUPPORTED_OPS.md")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check: bool = parser.parse_args().check
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(ROOT / "tools"))
    from supported_ops.page import page

    fresh = page()
    if not check:
        FILE.write_text(fresh, encoding="utf-8")
        return 0
    have = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    difference = list(difflib.unified_diff(have.splitlines(), fresh.splitlines(), FILE.name, "fresh", lineterm=""))
    print("\n".join(difference[:60]))
    if difference:
        print("SUPPORTED_OPS.md is not current: run `make docs` and commit it", file=sys.stderr)
    return bool(difference)


if __name__ == "__main__":
    sys.exit(main())
