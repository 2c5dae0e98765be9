"""Write docs/tpukernel_functions.md from the table of TPUKernel's functions; `make docs` calls it.

    python tools/gen_tpukernel_page.py [--check]

`--check` writes nothing and exits 1 when the file is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "tpukernel_functions.md"


def main() -> int:
    parser = argparse.ArgumentParser(description="generate docs/tpukernel_functions.md")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check: bool = parser.parse_args().check
    from tpukernel_page.errors import measured
    from tpukernel_page.page import page

    fresh = page(measured())
    if not check:
        FILE.write_text(fresh, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == fresh:
        return 0
    print("docs/tpukernel_functions.md is not current: run `make docs` and commit it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
