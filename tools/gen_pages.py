"""Write the pages that are made of tables in the code; `make docs` calls it.

    python tools/gen_pages.py [--check]

SUPPORTED_OPS.md: source op -> TensorOps -> where each target runs them. Nothing in it is kept by hand: the node cases
of the installed onnx package are imported, the Caffe layer tests of this project run and every conversion in them is
recorded; what comes out is simplified and put to the target op by op, as the pipeline does.

pyproject.toml: a line for each pass of the tree.

`--check` writes nothing and exits 1 when a page is not current.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="generate pages")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    check: bool = parser.parse_args().check
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bmlang_page import operators_page
    from okkernel_page import okkernel_functions
    from options_page import options_page
    from pass_lines import project
    from supported_ops.page import page as supported_ops
    from tpukernel_page.errors import measured
    from tpukernel_page.page import page as tpukernel_functions

    pages = {
        "pyproject.toml": project,
        "SUPPORTED_OPS.md": supported_ops,
        "docs/bmlang_operators.md": operators_page,
        "docs/okkernel_functions.md": okkernel_functions,
        "docs/options.md": options_page,
        "docs/tpukernel_functions.md": lambda: tpukernel_functions(measured()),
    }
    stale = [name for name, page in pages.items() if not _current(ROOT / name, page(), check)]
    if stale:
        print(f"{', '.join(stale)}: not current; run `make docs` and commit", file=sys.stderr)
    return bool(stale)


def _current(file: Path, fresh: str, check: bool) -> bool:
    """Whether the file is as it should be, which it always is after writing."""
    if not check:
        file.write_text(fresh, encoding="utf-8")
        return True
    have = file.read_text(encoding="utf-8") if file.exists() else ""
    difference = list(difflib.unified_diff(have.splitlines(), fresh.splitlines(), file.name, "fresh", lineterm=""))
    print("\n".join(difference[:60]), end="\n" if difference else "")
    return have == fresh


if __name__ == "__main__":
    sys.exit(main())
