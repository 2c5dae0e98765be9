"""Write docs/bmlang_operators.md from the table of BMLang's operators; `make docs` calls it.

    python tools/gen_bmlang_page.py [--check]

`--check` writes nothing and exits 1 when the file is not current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "bmlang_operators.md"


def main() -> int:
    parser = argparse.ArgumentParser(description="generate docs/bmlang_operators.md")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check: bool = parser.parse_args().check
    from bmlang_page import operators_page

    fresh = operators_page()
    if not check:
        FILE.write_text(fresh, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == fresh:
        return 0
    print("docs/bmlang_operators.md is not current: run `make docs` and commit it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
