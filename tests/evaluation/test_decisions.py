"""What outputs decide is told from structure and values, and counted as somebody who uses the network would."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler.errors import UsageError
from bmcompiler.evaluation.decisions import Decisions, decisions
from bmcompiler.evaluation.measures import (
    About,
    Count,
    boxes_kept,
    detections_kept,
    found_kept,
    letters_kept,
    peaks_kept,
)
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module

sys.path.append(str(Path(__file__).parents[1] / "passes"))
from nets import Net

Array = np.ndarray


def steps(module: Module, count: int = 12) -> list[dict[str, Array]]:
    random = np.random.default_rng(1)
    shapes = {n: v.shape for n, v in zip(module.main.input_names, module.main.arguments)}
    return [run_module(module, {n: random.normal(0, 1, s).astype(np.float32) for n, s in shapes.items()})
            for _ in range(count)]  # fmt: skip


def judged(module: Module, kind: Any = "auto") -> tuple[Decisions, list[dict[str, Array]]]:
    outputs = steps(module)
    return decisions(module.main, outputs, kind), outputs


def kinds(module: Module) -> list[str]:
    found = judged(module)[0].outputs
    return [found[name].kind.name if name in found else "" for name in module.main.output_names]


def head(n: Net, classes: int) -> Any:
    return n.matmul(n.input(1, 20), n.w(20, classes), n.w(classes))


def features(n: Net) -> Any:
    return n.relu(n.conv(n.input(1, 3, 12, 12), n.w(8, 3, 3, 3)))


def unit_rows(n: Net) -> Any:
    x = head(n, 32)
    return n.div(x, n.sqrt(n.reduce(n.mul(x, x), method="sum", axes=(1,), keepdims=True)))


def box_rows(n: Net) -> Any:
    x = n.reshape(features(n), shape=(1, 8, 100))
    boxes = n.matmul(n.w(1, 4, 8, low=1.0, high=9.0), x)
    return n.concat(boxes, n.sigmoid(n.matmul(n.w(1, 3, 8), x)), axis=1)


KINDS: dict[str, tuple[Callable[[Net], Any], str]] = {
    "softmax": (lambda n: n.softmax(head(n, 7)), "classes"),
    "softmax of maps": (lambda n: n.softmax(n.conv(features(n), n.w(4, 8, 1, 1)), axis=1), "classes"),
    "flat softmax of rows": (
        lambda n: n.reshape(n.softmax(n.reshape(head(n, 24), shape=(1, 8, 3)), axis=2), shape=(1, 24)),
        "classes",
    ),
    "logarithm": (lambda n: n.log_softmax(head(n, 7)), "classes"),
    "raw numbers of classes": (lambda n: head(n, 7), "classes"),
    "letters": (lambda n: n.matmul(n.input(1, 6, 20), n.w(20, 30)), "classes"),
    "one number of each anchor": (
        lambda n: n.reshape(n.permute(n.conv(features(n), n.w(2, 8, 1, 1)), order=(0, 2, 3, 1)), shape=(1, 200, 1)),
        "scores",
    ),
    "index": (lambda n: n.arg(head(n, 7), method="max", axis=1), "numbers"),
    "sigmoids": (lambda n: n.sigmoid(head(n, 7)), "scores"),
    "joined sigmoids": (lambda n: n.concat(n.sigmoid(x := head(n, 7)), n.sigmoid(n.neg(x)), axis=1), "scores"),
    "map of sigmoids": (lambda n: n.sigmoid(n.conv(features(n), n.w(1, 8, 1, 1))), "heat"),
    "rows of boxes and scores": (box_rows, "boxes"),
    "rows of length 1": (unit_rows, "embedding"),
    "one number": (lambda n: head(n, 1), ""),
    "maps": (features, ""),
    "one best for all samples": (lambda n: n.matmul(n.input(1, 9), n.w(9, 4), n.constant([0, 99, 0, 0])), ""),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_an_output_is_seen(name: str) -> None:
    make, wanted = KINDS[name]
    n = Net(3)
    assert kinds(n.done(make(n))) == [wanted]


@pytest.mark.parametrize("name", [name for name, (_, kind) in KINDS.items() if kind])
def test_float_keeps_its_decisions_and_noise_does_not(name: str) -> None:
    n = Net(3)
    judge, outputs = judged(n.done(KINDS[name][0](n)))
    wanted = outputs[0]
    (same,) = judge.count(wanted, wanted).values()
    (other,) = judge.count(outputs[1], wanted).values()
    assert same.of and same.share == pytest.approx(1)
    assert other.share < 1


def test_numbers_beside_scores_are_no_classes() -> None:
    n = Net(3)
    x = head(n, 8)
    assert kinds(n.done(n.softmax(x), n.matmul(x, n.w(8, 10)))) == ["classes", ""]
    n = Net(3)
    x = head(n, 8)
    assert kinds(n.done(n.matmul(x, n.w(8, 5)), n.matmul(x, n.w(8, 6)))) == ["classes", "classes"]
    n = Net(3)  # words, and corners of anchors
    x = n.input(1, 6, 20)
    assert kinds(n.done(n.matmul(x, n.w(20, 300)), n.matmul(x, n.w(20, 16)))) == ["classes", ""]


def test_anchors_above_0_in_either_form_are_what_counts() -> None:
    """Not the many that both leave out, nor the one that is largest."""
    found, wanted = np.array([[[3.0], [-1], [1], [-9]]]), np.array([[[1.0], [2], [3], [-9]]])
    assert found_kept(found, wanted, About(threshold=0)) == Count(2, 3)


def test_raw_scores_of_sure_noes_are_all_the_same() -> None:
    n = Net(3)
    x = n.reshape(n.conv(n.input(1, 3, 6, 6), n.w(1, 3, 3, 3, low=-4, high=4), n.fill(-4.0, 1)), shape=(1, 16, 1))
    module = n.done(x)
    judge, outputs = judged(module)
    (least,) = judge.least.values()
    (bounded,) = judge.bounded(outputs[0]).values()
    (before,) = outputs[0].values()
    assert bounded.min() == least > before.min()
    np.testing.assert_array_equal(bounded[before > least], before[before > least])
    assert decisions(module.main, outputs, "norm").least == {}


FLAT: list[Callable[[Net], Any]] = [
    *(features, box_rows, unit_rows),
    lambda n: n.conv(n.input(1, 3, 6, 6), n.w(8, 3, 3, 3)),
    lambda n: n.sigmoid(features(n)),
    lambda n: head(n, 8),
    lambda n: n.softmax(head(n, 8)),
    lambda n: n.log_softmax(head(n, 8)),
]


@pytest.mark.parametrize("make", FLAT)
@pytest.mark.parametrize("one", [False, True])
def test_outputs_without_an_axis_of_samples_are_judged(make: Callable[[Net], Any], one: bool) -> None:
    n = Net(3)
    x = make(n)
    x = n.reshape(x, shape=(prod(x.shape),))
    judge, outputs = judged(n.done(n.reduce(x, method="max", axes=(0,), keepdims=False) if one else x))
    assert all(count.share == 1 for count in judge.count(outputs[0], outputs[0]).values())


def test_the_class_that_most_positions_have_does_not_count() -> None:
    """Background and blank: positions where both forms find nothing hide those where one does."""
    n = Net(3)
    x = n.add(n.matmul(n.input(1, 40, 6), n.w(6, 5)), n.constant([[[4.0, 0, 0, 0, 0]]]))
    judge, outputs = judged(n.done(n.softmax(x, axis=2)))
    wanted = outputs[0]["out0"]
    others = int((wanted.argmax(2) != 0).sum())
    assert 0 < others < 20
    (count,) = judge.count(outputs[0], outputs[0]).values()
    assert count == Count(others, others)
    missed = np.zeros_like(wanted)
    missed[..., 0] = 1
    assert judge.count({"out0": missed}, outputs[0])["out0"] == Count(0, others)


def reader(n: Net, x: Any) -> Any:
    return n.softmax(n.add(n.matmul(x, n.w(6, 9)), n.constant([[[6.0] + [0] * 8]])), axis=2)


def test_a_list_of_letters_and_blanks_is_a_string() -> None:
    n = Net(3)
    judge, outputs = judged(n.done(reader(n, n.input(1, 40, 6))))
    assert judge.outputs["out0"].kind.name == "strings"
    (count,) = judge.count(outputs[0], outputs[0]).values()
    assert count.of and count.share == 1
    (count,) = judge.count(outputs[1], outputs[0]).values()
    assert count.share < 1
    n = Net(3)  # beside another output, rows may be of anchors
    x = n.input(1, 40, 6)
    assert kinds(n.done(reader(n, x), n.matmul(x, n.w(6, 4)))) == ["classes", ""]


def letters(text: str) -> Array:
    """Scores (1, positions, 9) of what is written so, `-` for a blank."""
    scores = np.zeros((1, len(text), 9))
    scores[0, range(len(text)), [0 if c == "-" else 1 + ord(c) - ord("a") for c in text]] = 1
    return scores


@pytest.mark.parametrize("found, wanted, kept, of", [
    ("aa--b-", "-a--bb", 2, 2),  # later and longer
    ("a-a-b-", "aa--b-", 2, 3),  # one letter more
    ("aaa-b-", "a-a-b-", 2, 3),  # one lost between equal ones
    ("c---b-", "a---b-", 1, 2),  # another one
    ("------", "a---b-", 0, 2),
    ("------", "------", 0, 0),
])  # fmt: skip
def test_letters_are_kept_wherever_they_are_read(found: str, wanted: str, kept: int, of: int) -> None:
    assert letters_kept(letters(found), letters(wanted), About(2, usual=0)) == Count(kept, of)
    turned = [np.swapaxes(letters(text), 0, 1) for text in (found, wanted)]
    assert letters_kept(*turned, About(2, usual=0)) == Count(kept, of)


def test_peaks_are_kept_where_the_other_map_is_high_nearby() -> None:
    wanted = np.zeros((1, 1, 9, 9))
    wanted[0, 0, 2, 2], wanted[0, 0, 6, 6] = 0.9, 0.8
    found = np.zeros_like(wanted)
    found[0, 0, 2, 3], found[0, 0, 6, 6] = 0.7, 0.4
    assert peaks_kept(found, wanted, About()) == Count(2, 3)  # one of two there and back, one lost


def test_boxes_have_to_be_there_in_both_of_one_class_and_overlap() -> None:
    wanted = np.array([[[10, 10, 4, 4, 0.9, 0.1], [20, 20, 4, 4, 0.8, 0.1], [30, 30, 4, 4, 0.2, 0.7],
                        [40, 40, 4, 4, 0.1, 0.1], [50, 50, 4, 4, 0.9, 0.0]]])  # fmt: skip
    found = wanted.copy()
    found[0, 1, 4] = 0.3  # lost
    found[0, 2, 4:] = 0.7, 0.2  # another class
    found[0, 3, 4] = 0.9  # found where nothing is
    found[0, 4, 0] += 3  # moved by most of its width
    columns = [np.moveaxis(array, 2, 1) for array in (found, wanted)]
    assert boxes_kept(*columns, About(axis=1)) == Count(1, 5)
    objects = [np.concatenate([array[..., :4], np.ones((1, 5, 1)), array[..., 4:]], 2) for array in (found, wanted)]
    assert boxes_kept(*objects, About(axis=2)) == Count(1, 5)


def test_detections_are_compared_whatever_their_order() -> None:
    rows = np.array([[0, 1, 0.9, 0, 0, 1, 1], [0, 1, 0.8, 2, 2, 3, 3], [0, 2, 0.1, 0, 0, 1, 1]])
    assert detections_kept(rows[::-1][None, None], rows[None, None], About()) == Count(4, 4)
    gone = rows.copy()
    gone[1, 3:] += 0.8
    assert detections_kept(gone[None, None], rows[None, None], About()) == Count(2, 4)


def test_a_function_or_a_name_overrules() -> None:
    n = Net(3)
    module = n.done(head(n, 7))
    assert not judged(module, "norm")[0].outputs

    def near(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> tuple[float, int]:
        return float(np.abs(found["out0"] - wanted["out0"]).max() < 1), 1

    judge, outputs = judged(module, near)
    assert judge.count(outputs[0], outputs[0]) == {"near": Count(1, 1)}
    assert judge.count(outputs[1], outputs[0]) == {"near": Count(0, 1)}
    assert judged(module, "scores")[0].outputs["out0"].kind.name == "scores"
    with pytest.raises(UsageError, match="'argmx' is no kind of decisions"):
        judged(module, "argmx")
    with pytest.raises(UsageError, match="cannot be loaded"):
        judged(module, "nowhere:function")


def test_a_function_that_raises_or_gives_no_pair_is_a_sentence() -> None:
    def raises(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[float, int]:
        raise ValueError("no such class")

    def one_number(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Any:
        return 3.0

    arrays = {"y": np.zeros((1, 4), np.float32)}
    for own, said in (
        (raises, "'raises' raised ValueError: no such class"),
        (one_number, "'one_number' raised Type"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            Decisions({}, own, own.__name__).count(arrays, arrays)
        assert "(outputs, float outputs) -> (kept, of)" in str(caught.value)
