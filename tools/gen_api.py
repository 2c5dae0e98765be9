"""The API reference from the docstrings, as HTML pages (`make api`); a warning of pdoc is an error.

python tools/gen_api.py [OUTPUT]
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pdoc.doc
import pdoc.render

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("", ".frontends", ".passes", ".backends", ".runtime")
GENERATED = "_pb2"
_COSMETIC = "Error parsing type "
"""Annotations with names that only type checkers import are shown as they are written."""
_SECTIONS = ("Attributes:", "Args:")
_MARGIN = "\n    "
_NEXT_NAME = re.compile(r"(?<=[.;]) (?=[a-z_]\w*(?:, [a-z_]\w*)*: )")
"""Where the next name begins."""


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


def separated(docstring: str) -> str:
    """A docstring whose attributes and arguments begin lines of their own, where several share one in the code."""
    lines, inside = [], False
    for line in docstring.splitlines():
        inside = line.strip() in _SECTIONS if line[:1].strip() else inside
        lines.append(_NEXT_NAME.sub(_MARGIN, line) if inside else line)
    return "\n".join(lines)


def documented(found: pdoc.doc.Doc[Any]) -> Iterator[pdoc.doc.Doc[Any]]:
    """A module, class or function, and what it has."""
    yield found
    for member in getattr(found, "members", {}).values():
        yield from documented(member)


def write(output: Path, names: Sequence[str], home: bool) -> None:
    """One page per module, and an index; with `home` each leads to index.html of the folder above."""
    for name in names:
        resolve_late_names(name)
    pages = {name: pdoc.doc.Module(import_module(name)) for name in names}
    for each in (each for module in pages.values() for each in documented(module)):
        each.docstring = separated(each.docstring)
    pdoc.render.configure(
        docformat="google", show_source=False, search=False, template_directory=ROOT / "tools" / "api_templates"
    )
    pdoc.render.env.globals["home"] = home
    for name, module in pages.items():
        path = output.joinpath(*name.split(".")).with_suffix(".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pdoc.render.html_module(module, pages), encoding="utf-8")
    (output / "index.html").write_text(pdoc.render.html_index(pages), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="the API reference from the docstrings, as HTML pages")
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "docs" / "api", metavar="OUTPUT")
    output: Path = parser.parse_args().output
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=_COSMETIC)
        names = modules()
        write(output, names, home=(output.parent / "index.html").is_file())
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    print(f"{len(names)} modules: {output / 'index.html'}")
    return 1 if caught else 0


if __name__ == "__main__":
    sys.exit(main())
