"""A failure is shrunk to the nodes that it needs, and written as a file that fails again."""

from __future__ import annotations

from .cases import drawn
from .shrink import Sample, shrunk


def test_only_the_node_that_fails_is_left() -> None:
    case = drawn(3, "unet")
    assert len(case.model.graph.node) > 8

    def fails(sample: Sample) -> bool:
        return any(node.op_type == "MaxPool" for node in sample.model.graph.node)

    small = shrunk(Sample(case.model, case.data), fails)
    assert [node.op_type for node in small.model.graph.node] == ["MaxPool"]
    assert set(small.batch) == {small.model.graph.input[0].name}


def test_two_nodes_that_fail_together_are_left_together() -> None:
    case = drawn(5, "shufflenet")

    def fails(sample: Sample) -> bool:
        kinds = [node.op_type for node in sample.model.graph.node]
        return "Concat" in kinds and "Transpose" in kinds

    small = shrunk(Sample(case.model, case.data), fails)
    assert sorted(node.op_type for node in small.model.graph.node) == ["Concat", "Transpose"]
