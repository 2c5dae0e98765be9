"""Faults on purpose: what can be wrong in a place, which places are drawn, and that a fault is made and found."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation import inplace, loading  # noqa: E402
from mutation.asking import in_turns, passed_over, run, selected, verdict, within  # noqa: E402
from mutation.faults import ONLY_WHOLE, broken, faults  # noqa: E402
from mutation.harmless import GUESSED, HARMLESS, is_harmless  # noqa: E402
from mutation.kept import Kept, Said  # noqa: E402
from mutation.loaded import Loaded  # noqa: E402
from mutation.places import Place, chosen, faults_of  # noqa: E402
from mutation.probes import PROBE, probed  # noqa: E402
from mutation.reach import Reach, Timed, key, module_key, stale, write  # noqa: E402
from mutation.remembered import Remembered  # noqa: E402
from mutation.targets import GROUPS, PROGRAMS, file_of  # noqa: E402

KINDS = (
    ("a + b", "sign", "a - b"),
    ("a - b", "sign", "a + b"),
    ("-a", "sign", "a"),
    ("a * b", "stride", "a"),
    ("a // b", "rounding", "-(-a // b)"),
    ("a << b", "shift", "a << b + 1"),
    ("np.rint(a)", "rounding", "np.floor"),
    ("Rounding.HALF_UP", "rounding", "Rounding.HALF_DOWN"),
    ("a < b", "compare", "a <= b"),
    ("1 <= a", "compare", "1 < a"),
    ("a and b", "condition", "a or b"),
    ("not a", "condition", "a"),
    ("f(a, b)", "swap", "f(b, a)"),
    ("a[b, c]", "swap", "a[c, b]"),
    ("a[1]", "column", "a[0]"),
    ("a[0]", "column", "a[1]"),
    ("a[3]", "column", "a[4]"),
    ("f(True)", "flag", "False"),
    ("min(a, b)", "bound", "max(a, b)"),
    ("np.maximum(a, b)", "bound", "np.minimum"),
    ("f(7)", "constant", "8"),
)


def in_function(code: str) -> list[tuple[str, str]]:
    return [(fault.kind, fault.wrong) for fault in faults(ast.parse(f"def f(a, b, c):\n    {code}"))]


@pytest.mark.parametrize(("code", "kind", "wrong"), KINDS)
def test_a_fault_of_each_kind(code: str, kind: str, wrong: str) -> None:
    assert (kind, wrong) in in_function(f"return {code}")


def test_a_call_is_left_out_and_a_wait_is_called_one() -> None:
    assert ("drop", "pass") in in_function("a.append(b)")
    assert ("drop", "pass") in in_function("a += b")
    assert ("wait", "pass") in in_function("build.wait_for(b)")


@pytest.mark.parametrize(
    "code", ['"""Text."""', "raise E(a + 1)", "assert a + 1", 'return f"{a + 1}"', 'return a + "x"']
)
def test_texts_and_errors_are_left_alone(code: str) -> None:
    assert in_function(code) == []


def test_whether_an_estimate_may_equal_another_is_left_alone() -> None:
    for code in ("plan.cycles < a", "least_cost(a) >= 2 * b"):
        assert "compare" not in dict(in_function(f"return {code}"))
    assert ("compare", "cycles <= 0") in in_function("return cycles < 0")
    assert ("compare", "a < b < cycles") in in_function("return a <= b < cycles")


def test_whether_a_number_may_equal_a_tolerance_is_left_alone() -> None:
    for code in ("abs(a - b) <= _NEAR * b", "a.scale <= b.top * (1 + 1e-06)"):
        assert "compare" not in dict(in_function(f"return {code}"))
    for code, wrong in (("a < 0.5", "a <= 0.5"), ("near < b", "near <= b"), ("a <= 2.0 ** b", "a < 2.0 ** b")):
        assert ("compare", wrong) in in_function(f"return {code}")


def test_what_numpy_and_zip_do_not_need_is_left_alone() -> None:
    for code in ("a.astype(b, copy=False)", "zip(a, b, strict=True)", "einsum(a, optimize=True)", "a.reshape(b, -1)"):
        assert in_function(f"return {code}") == []
    assert ("flag", "False") in in_function("return a.astype(b, copy=True)")
    assert not in_function("return cast(dict[b, c], a)") and in_function("return dict(a[b, c])")


def test_a_fault_keeps_its_name_when_it_moves() -> None:
    first, second = "def f(a):\n    return a + 1", "x = 3\n\n\ndef f(a):\n    '''Text.'''\n    return a + 1"
    assert {each.digest() for each in faults(ast.parse(first))} <= {each.digest() for each in faults(ast.parse(second))}


def test_one_place_is_broken() -> None:
    source = "def f(a, b):\n    if a < b:\n        return a + b\n    return a - b\n"
    (fault,) = [each for each in faults(ast.parse(source)) if each.kind == "compare"]
    assert ast.unparse(broken(source, fault.digest())) + "\n" == source.replace("<", "<=")
    with pytest.raises(LookupError):
        broken(source, "0123456789ab")


def test_a_division_without_a_remainder_has_nothing_to_round() -> None:
    source = "def f(a, b):\n    return a // b\n"
    (fault,) = [each for each in faults(ast.parse(source)) if each.rounds_up]
    names: dict[str, Any] = {}
    exec(compile(broken(source, ONLY_WHOLE + fault.digest()), "f", "exec"), names)
    assert names["f"](6, 3) == 2
    with pytest.raises(ZeroDivisionError):
        names["f"](7, 3)
    assert not any(each.rounds_up for each in faults(ast.parse("def f(a):\n    return np.rint(a + 1)")))


def test_no_fault_is_made_of_what_is_a_guess() -> None:
    for module, names in GUESSED.items():
        source = file_of(f"bmcompiler.{module}").read_text(encoding="utf-8")
        assert all(re.search(rf"\b{name}\b", source) for name in names), module
    assert is_harmless("numeric.sampled:1", "step = max(1, _VALUES // n)")
    assert not is_harmless("numeric.sampled:1", "step = max(1, n)") and not is_harmless("numeric.a:1", "_VALUES")


def test_places_are_the_same_twice_and_spread() -> None:
    places = chosen(1, 150)
    assert places == chosen(1, 150) != chosen(2, 150)
    assert len({place.name for place in places}) == 150
    assert {place.group for place in places} == {group.name for group in GROUPS}
    for group in GROUPS:
        of_group = [place for place in places if place.group == group.name]
        assert len({place.module for place in of_group}) >= min(len(of_group), len(group.modules()))
        assert len({place.fault.kind for place in of_group}) >= 4


def test_places_of_one_module() -> None:
    assert {place.module for place in chosen(1, 20, "numeric.rounding")} == {"bmcompiler.numeric.rounding"}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_reviewed_places_exist(name: str) -> None:
    module, _, digest = name.partition(":")
    module = module if module.startswith("bmcompiler.") else f"bmcompiler.{module}"
    assert digest in {fault.digest() for fault in faults_of(module)}, f"{name} is gone: delete its line"
    assert len(HARMLESS[name].split()) > 4


ROUNDING = "bmcompiler.numeric.rounding"
WHOLE = next(each for each in faults_of(ROUNDING) if each.kind == "sign" and each.function == "_whole")


SOURCE = '''"""A module."""
from dataclasses import dataclass

@dataclass
class Pair:
    """Two numbers."""
    a: int
    def sum(self, b):
        """Their sum."""
        if b < 0:
            return self.a
        return self.a + b
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package with the module `pair`."""
    folder = tmp_path / "broken_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "pair.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield "broken_package"
    for name in [name for name in sys.modules if name.startswith("broken_package")]:
        del sys.modules[name]


def test_a_broken_module_is_imported_and_its_file_stays(package: str) -> None:
    (fault,) = [each for each in faults(ast.parse(SOURCE)) if each.kind == "sign"]
    loading.install(f"{package}.pair".__eq__, lambda _, source: broken(source, fault.digest()))
    module = importlib.import_module(f"{package}.pair")
    assert module.Pair(5).sum(3) == 2
    assert Path(str(module.__file__)).read_text(encoding="utf-8") == SOURCE
    with pytest.raises(RuntimeError, match="imported before"):
        loading.install(f"{package}.pair".__eq__, lambda _, source: ast.parse(source))


def test_probes_tell_which_statements_are_reached(package: str) -> None:
    names: list[tuple[str, str]] = []
    reached: set[int] = set()

    def number(function: str, statement: str) -> int:
        names.append((function, statement))
        return len(names) - 1

    loading.install(f"{package}.pair".__eq__, lambda _, source: probed(ast.parse(source), number), {PROBE: reached.add})
    module: ModuleType = importlib.import_module(f"{package}.pair")
    assert not reached
    assert module.Pair(5).sum(3) == 8
    assert {names[each] for each in reached} == {("Pair.sum", "if b < 0: pass"), ("Pair.sum", "return self.a + b")}


def test_records_are_kept_until_the_test_file_changes_or_a_module_is_gone(tmp_path: Path) -> None:
    file, name, known = ROOT / "tests" / "test_rounding.py", "tests/test_rounding.py", key("m", "f", "x")
    assert stale([name], tmp_path) == [name]
    write(file, {f"{name}::one": (0.5, {known, module_key(ROUNDING)}), f"{name}::two": (0.1, set())}, tmp_path)
    assert stale([name], tmp_path) == []
    assert Reach(tmp_path).tests(known, [name]) == [Timed(f"{name}::one", 0.5)]
    assert Reach(tmp_path).tests(known, ["tests/ops"]) == []
    record = next(tmp_path.iterdir())
    text = record.read_text(encoding="utf-8")
    for before in ('"digest": "', '"modules": ["'):
        assert before in text
        record.write_text(text.replace(before, f"{before}0"), encoding="utf-8")
        assert stale([name], tmp_path) == [name]


def test_a_plan_is_asked_of_recorded_programs_after_the_quickest_tests(tmp_path: Path) -> None:
    place = Place("numeric", ROUNDING, WHOLE, ("tests/test_rounding.py",))
    names = {key(ROUNDING, WHOLE.function, WHOLE.statement)}
    for file in ("tests/test_rounding.py", PROGRAMS):
        write(ROOT / file, {f"{file}::{seconds}": (seconds, names) for seconds in (1.0, 1.5, 9.0)}, tmp_path)
    order = [test.id.removeprefix("tests/test_").replace("_", " ") for test in selected(place, Reach(tmp_path), 20)]
    assert order[0] == "rounding.py::1.0" and order[1:3] == [f"recorded programs.py::{n}" for n in (1.0, 1.5)]
    assert order[3] == "rounding.py::1.5" and len(order) == 6
    assert passed_over(place, Reach(tmp_path), selected(place, Reach(tmp_path), 20)) == []
    left = passed_over(place, Reach(tmp_path), selected(place, Reach(tmp_path), 1))
    assert {test.seconds for test in left} >= {9.0} and {test.file for test in left} >= {PROGRAMS}


def test_quick_tests_of_many_files_come_first() -> None:
    tests = [Timed("a::1", 3), Timed("a::2", 1), Timed("b::1", 2), Timed("a::3", 2)]
    assert [test.id for test in in_turns(tests)] == ["a::2", "b::1", "a::3", "a::1"]
    assert [test.id for test in within(in_turns(tests), 4)] == ["a::2", "b::1"]
    assert [test.id for test in within([Timed("a::1", 3)], 1)] == ["a::1"]


def test_what_a_finished_run_means() -> None:
    made = {"applied": True, "found": "", "why": "", "ran": 3}
    assert verdict("m:1", 0, made, "") == ("", "", 3)
    assert verdict("m:1", 1, {**made, "found": "a::1", "why": "assert"}, "") == ("a::1", "assert", 3)
    assert verdict("m:1", 4, made, "ImportError: x") == ("import", "ImportError: x", 3)
    assert verdict("m:1", 0, {**made, "applied": False}, "") == ("", "", 0)
    for code in (1, 4, 5):  # no answer where the fault was not made, or where no test ran
        with pytest.raises(RuntimeError, match="m:1"):
            verdict("m:1", code, {**made, "applied": code == 5}, "")


ITS_TEST = Timed("tests/test_rounding.py::test_floats_become_whole", 1)


def test_a_fault_of_ours_is_found_by_its_test() -> None:
    assert run(f"{ROUNDING}:{WHOLE.digest()}", [ITS_TEST])[::2] == (ITS_TEST.id, 1)
    assert run("nothing", [ITS_TEST]) == ("", "", 1)


def test_a_fault_is_made_in_a_function_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    function = importlib.import_module(ROUNDING)._whole
    right = function.__code__
    monkeypatch.setattr(function, "__code__", right)  # which puts it back
    known = {(str(file_of(ROUNDING)), right): [function]}
    assert inplace.make(ROUNDING, WHOLE.digest(), known) and function.__code__ != right
    assert not inplace.make(ROUNDING, WHOLE.digest(), {})


def test_what_a_class_is_made_with_is_broken_on_import() -> None:
    """Code of other functions of a changed tree may differ from the right one, which is no fault."""
    module = "bmcompiler.backends.lanes.kernels.sums.product"
    importlib.import_module(module)
    fault = next(each for each in faults_of(module) if each.function == "FloatProductKernel")
    assert not inplace.make(module, fault.digest(), inplace.all_functions())


def test_a_process_that_has_imported_all_finds_it_too() -> None:
    loaded = Loaded(["tests/test_rounding.py"])
    for _ in range(2):  # a fault does not outlive its question
        said = loaded.ask(ROUNDING, WHOLE.digest(), [ITS_TEST])
        assert said["applied"] and said["found"] == ITS_TEST.id and said["ran"] == 1
        other = loaded.ask(ROUNDING, WHOLE.digest(), [Timed("tests/test_rounding.py::test_gone", 1)])
        assert other["applied"] and not other["found"] and other["ran"] == 0


def test_answers_are_kept_while_what_gave_them_is_as_it_was(tmp_path: Path) -> None:
    found, survived = Said("tests/test_rounding.py::one", "why", 3, 0.5), Said("", "", 7, 2.0)
    Kept(tmp_path).put("a", ROUNDING, ["tests/test_arith.py::two"], found)
    Kept(tmp_path).put("b", ROUNDING, ["tests/test_arith.py::two"], survived)
    kept = Kept(tmp_path)
    assert kept.get("a", ROUNDING, []) == found  # other tests are not asked about what one found
    assert kept.get("b", ROUNDING, ["tests/test_arith.py::two"]) == survived
    assert kept.get("b", ROUNDING, ["tests/test_arith.py::three"]) is None
    assert kept.get("a", "bmcompiler.numeric.arith", []) is None
    assert kept.get("c", ROUNDING, []) is None


def test_what_is_computed_once_is_reached_by_all_who_ask_for_it() -> None:
    known = Remembered()

    def half(number: int) -> int:
        known.now.add(number)
        return number // 2

    remembered = known.cached(half)
    for _ in range(2):
        known.begin()
        assert (remembered(8), remembered(8), remembered(6)) == (4, 4, 3)
        assert known.now == {6, 8}
    assert remembered.cache_info().misses == 2
    assert known.cached(4)(max) is not max and known.cached(4)(max)(1, 2) == 2
