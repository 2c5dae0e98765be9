"""One word, one meaning: home-made words do not come back, and a class name stands for one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("bmcompiler", "frontends", "passes", "backends", "runtime")
WORDS = {
    "held": "contents of a buffer",
    "stay": "live range",
    "mover": "copier",
    "keeper": "resident_memory",
    "turned": "transposed",
    "finish_products": "requantize_products",
}
"""Home-made words, and what the field calls them."""
SENSES = {
    # word: rooms where it has the meaning of docs/glossary.md; what is meant elsewhere has another name
    "machine": ("backends/",),
    "rule": ("backends/", "bmcompiler/target.py", "bmcompiler/codegen/kernels.py", "frontends/caffe/graph.py"),
    "chain": ("backends/dv/", "runtime/simulator/dv/"),
}
"""Words of our own that are easily taken for something else: an identifier of another room has none of them."""
BANNED = {
    # (rooms, word): what it is called there
    ("passes/quantization/choice/", "group"): "cluster (of output channels)",
    ("passes/quantization/islands.py", "group"): "island",
    ("backends/dv/lowering/chains.py", "group"): "command plan",
    ("frontends/bmlang/", "slot"): "place (of a form)",
    ("bmcompiler/codegen/", "slot"): "binding (of a step)",
    ("bmcompiler/codegen/", "unit"): "stripe",
}
"""Words that have several meanings elsewhere, and where they have none of them."""
ELSEWHERE = {
    "machine": "memories (of a simulated chip), processor (of a host)",
    "rule": "pattern (of a pass), decomposition, conversion (to integers), typing (of BMLang)",
    "chain": "branch (of a network), line (of arithmetic)",
}
OWN = ("backends/bm", "backends/dv", "runtime/simulator/bm", "runtime/simulator/dv", "frontends/", "bmcompiler/bmnet/")
"""Rooms of a chip, a language or a vendor's interface: there, names are those of its documents."""
SHARED = {
    "Layer": "a layer of the source, in whatever that room knows of it",
    "Layers": "the layers of a scheme of quantization, one class each",
    "Quantize": "the pass, and the op it makes",
    "Pool": "the op, and a pool of processes",
    "Format": "bit fields of a command, and a number's",
    "Part": "of a file, and of an evaluation",
    "Numbers": "of a rounding, and of a tensor's statistics",
    "Product": "a matrix product, and a factor of a formula",
    "Unit": "of a command, as the vendors say it, and what a choice is made for",
    "Geometry": "of windows, decoded and emitted",
    "Plan": "of the thresholds of a net, and of the steps of a program",
    "Kind": "of an op's operands, and of a command",
    "Arithmetic": "of a chip, and the family of ops",
}
"""Names that two rooms of the core use, each for what the word means there. Kernels are named after their op."""


def sources() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if not path.name.endswith("_pb2.py")]


def test_home_made_words_name_nothing() -> None:
    used = {
        (str(path.relative_to(ROOT)), word)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for word in (getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "attr", None))
        if word in WORDS
    }
    assert not {
        f"{path}: '{word}' is called '{WORDS[word]}'" for path, word in used if not path.startswith("frontends/")
    }


def parts(name: str) -> set[str]:
    """The words of an identifier, in lower case; of a plural, the singular as well."""
    plain = "" if name.startswith("__") else name
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", plain)}
    return words | {word.removesuffix("s") for word in words}


def test_words_keep_to_their_rooms() -> None:
    wrong = set()
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        foreign = {word for word, rooms in SENSES.items() if not place.startswith(rooms)}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            name
            for node in ast.walk(tree)
            for field in ("id", "arg", "attr", "name")
            if (name := getattr(node, field, None))
        }
        wrong |= {(place, name, ELSEWHERE[word]) for name in names for word in foreign & parts(str(name))}
        banned = {word: name for (rooms, word), name in BANNED.items() if place.startswith(rooms)}
        wrong |= {(place, name, banned[word]) for name in names for word in banned.keys() & parts(str(name))}
    assert not wrong


def test_words_of_rooms_are_in_the_glossary() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    known = {word for row in rows for word in re.split(r"[,\s]+", row)}
    assert set(SENSES) == set(ELSEWHERE) and set(SENSES) <= known


def test_class_names_of_the_core_stand_for_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        place = str(path.relative_to(ROOT))
        if not place.startswith(OWN):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(place)
    twice = {name for name, places in homes.items() if len(places) > 1 and not name.endswith("Kernel")} - set(SHARED)
    assert not {name: homes[name] for name in twice}
