"""The API reference from the docstrings, as HTML pages (`make api`); a warning of pdoc is an error.

python tools/gen_api.py [OUTPUT]
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pdoc.doc
import pdoc.render

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("", ".frontends", ".passes", ".backends", ".runtime")
GENERATED = "_pb2"
_COSMETIC = "Error parsing type "
"""Annotations with names that only type checkers import are shown as they are written."""


def modules() -> list[str]:
    """All modules of the five folders, generated protobuf code left out."""
    names = []
    for suffix in PACKAGES:
        package = import_module(f"bmcompiler{suffix}")
        names.append(package.__name__)
        own = [str(Path(str(package.__file__)).parent)]  # not the checkout, which holds it again
        names += [m.name for m in walk_packages(own, f"{package.__name__}.")]
    return sorted({name for name in names if not name.endswith(GENERATED)})


def resolve_late_names(name: str) -> None:
    """Names that a package imports on first use must stand in it before pdoc looks."""
    module = import_module(name)
    for each in getattr(module, "__all__", ()):
        vars(module).setdefault(each, getattr(module, each))


def write(output: Path) -> list[str]:
    """One page per module, and an index. Returns the names of the modules."""
    names = modules()
    for name in names:
        resolve_late_names(name)
    pages = {name: pdoc.doc.Module(import_module(name)) for name in names}
    pdoc.render.configure(docformat="google", show_source=False, search=False)
    for name, module in pages.items():
        path = output.joinpath(*name.split(".")).with_suffix(".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pdoc.render.html_module(module, pages), encoding="utf-8")
    (output / "index.html").write_text(pdoc.render.html_index(pages), encoding="utf-8")
    return names


def main() -> int:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "api"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=_COSMETIC)
        names = write(output)
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    print(f"{len(names)} modules: {output / 'index.html'}")
    return 1 if caught else 0


if __name__ == "__main__":
    sys.exit(main())
