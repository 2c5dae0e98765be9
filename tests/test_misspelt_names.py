"""A type checker finds misspelt operands, attributes and fields: each line of WRONG is an error, none of RIGHT is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAD = """
from bmcompiler.backends.bm1684.instructions.products import Integers
from bmcompiler.backends.bm1880.bmkernel import bmk1880_relu_param_t
from bmcompiler.backends.dv.driver.commands import Run
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.kernels import LocalKernel
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.layers.pool import MaxPool
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.quantization.base import COMMON, Scaling
from bmcompiler.passes.rewriting import on, producer
from bmcompiler.target import rule


def of_conv(op: Conv, rewriter: Rewriter) -> bool: return op.group == 1
def drafts(op: Conv, draft: Draft) -> Value | None: return op.bias
def builds(op: Conv, low: object) -> Value: return op.input


class ConvKernel(LocalKernel[Conv]):
    @rule("The convolution must have one group")
    def one_group(self, op: Conv) -> bool: return op.group == 1


conv: Conv
pool: MaxPool
geometry: Geometry
run: Run
relu: bmk1880_relu_param_t
"""
RIGHT = """
pair: tuple[int, int] = conv.strides
name: str = conv.activation
first: Value = conv.input
last: Value | None = conv.bias
(producer(first, MaxPool) or pool).strides
on(Conv, of_conv)
legalizes(Conv)(drafts)
ConvKernel().one_group(conv)
"""
WRONG = """
conv.stridez                                        # an attribute
conv.wieght                                         # an operand
pool.group                                          # an attribute of another op
conv.group = 2                                      # attributes are not assigned like this
text: str = conv.group                              # another type
conv.bias.dtype                                     # it may be absent
(producer(conv.input, MaxPool) or pool).stridez     # what a rewrite rule finds
on(MaxPool, of_conv)                                # a rule for other ops
legalizes(MaxPool)(drafts)
COMMON.converts(MaxPool, scaling=Scaling.FREE)(builds)
ConvKernel().one_group(pool)                        # a kernel for other ops
class Other(LocalKernel[Conv]): ops = (MaxPool,)     # and one that says so
Integers(itme=1, data_signed=True)                  # fields of instructions
geometry.stridez
run.comands
relu.ifmapp
"""


@pytest.mark.slow
def test_every_misspelt_name_fails_the_type_check_and_nothing_else_does(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_types", ROOT / "tools" / "check_types.py")
    assert spec is not None and spec.loader is not None
    check_types = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check_types)
    check_types.lay_out(tmp_path)
    lines = (HEAD + RIGHT + WRONG).splitlines()
    (tmp_path / "plugin.py").write_text("\n".join(lines), encoding="utf-8")
    done = check_types.run(tmp_path, ["plugin.py"])
    found = {int(number) for number in re.findall(r"^plugin\.py:(\d+): error", done.stdout, re.MULTILINE)}
    first = len((HEAD + RIGHT).splitlines())
    expected = {number for number, line in enumerate(lines, 1) if number > first and line.strip()}
    assert found == expected, done.stdout
