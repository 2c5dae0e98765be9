"""Pipeline strings, pass options, contexts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets import Net

from bmcompiler import passmanager
from bmcompiler.errors import UsageError, VerifyError
from bmcompiler.ir import Module
from bmcompiler.passmanager import Pass, PassContext, PassResult, Pipeline, describe_options, run_pipeline


@dataclass(frozen=True)
class Sample(Pass):
    """A pass with one option of each kind."""

    name = "sample"
    mode: str = field(default="auto", metadata={"choices": ("auto", "fixed")})
    text: str = ""
    bins: int = 2048
    ratio: float = 0.5
    deep: bool = False
    only: tuple[str, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        ctx.notes.append(str(self))
        return PassResult(False)


@dataclass(frozen=True)
class Breaks(Pass):
    """Leaves wrong IR behind."""

    name = "breaks"

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        module.main.output_names.append("nobody")
        return PassResult(True)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"sample": lambda: Sample, "breaks": lambda: Breaks}
    monkeypatch.setattr(passmanager, "entry_points", lambda group: known)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("sample", "sample"),
        (" sample{ } , sample ", "sample,sample"),
        ("sample{mode=fixed,bins=16}", "sample{mode=fixed,bins=16}"),
        ("sample{bins=16, deep=true, ratio=2}", "sample{bins=16,ratio=2.0,deep=true}"),
        ("sample{only=conv1}", "sample{only=[conv1]}"),
        ('sample{only=[conv/1:0,"a, b"],text="x\\"y"}', 'sample{text="x\\"y",only=[conv/1:0,"a, b"]}'),
        ("sample{bins=2048}", "sample"),
    ],
)
def test_pipelines_print_in_one_form(text: str, printed: str) -> None:
    assert str(Pipeline.parse(text)) == printed
    assert Pipeline.parse(printed) == Pipeline.parse(text)


options = st.builds(
    Sample,
    mode=st.sampled_from(["auto", "fixed"]),
    text=st.text(),
    bins=st.integers(),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    deep=st.booleans(),
    only=st.lists(st.text()).map(tuple),
)


@given(st.lists(options, max_size=3))
def test_every_pipeline_reads_back(passes: list[Sample]) -> None:
    pipeline = Pipeline(tuple(passes))
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smaple", "there is no pass 'smaple'. Remedy: did you mean sample?"),
        ("zzz", "there is no pass 'zzz'. Remedy: the passes are: sample, breaks"),
        ("split-images", "the pass 'split-images' is not registered. Remedy: install bmcompiler again"),
        ("join-runs", "the pass 'join-runs' is not registered. Remedy: install bmcompiler again"),
        ("quantization", "there is no pass 'quantization'"),
        ("chip", "there is no pass 'chip'"),
        ("sample{bin=1}", "has no option 'bin'. Remedy: its options: mode: str = auto (auto|fixed), text: str"),
        ("sample{bins=1.5}", "option bins must be int, got '1.5'"),
        ("sample{bins=[1]}", "option bins must be int, got '[...]'"),
        ("sample{ratio=nan}", "option ratio must be float, got 'nan'"),
        ("sample{deep=maybe}", "option deep must be bool, got 'maybe'"),
        ("sample{mode=slow}", "option mode must be auto or fixed, got 'slow'"),
        ("sample{mode=auto", "expected ',' or '}' at column 17, found the end"),
        ("sample{only=[a b]}", "expected ',' or ']' at column 15"),
        ("sample,", "expected the name of a pass at column 8, found the end"),
    ],
)
def test_bad_pipelines_say_what_is_wrong_and_what_is_known(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Pipeline.parse(text)
    assert message in str(caught.value)


def test_options_are_described_with_types_and_defaults() -> None:
    assert describe_options(Sample).endswith(
        "bins: int = 2048, ratio: float = 0.5, deep: bool = false, only: list of str = []"
    )
    assert describe_options(Breaks) == "none"


def test_run_reports_time_notes_and_printed_ir() -> None:
    net = Net()
    module = net.done(net.relu(net.input(1, 2)))
    texts: list[str] = []
    ctx, timing = PassContext(log=texts.append), []
    assert not run_pipeline(module, "sample{bins=2},sample", ctx, print_ir_after="all", verify_each=True, timing=timing)
    assert ctx.notes == ["sample{bins=2}", "sample"] == [name for name, _ in timing]
    assert texts[0] == f"// IR after sample{{bins=2}}\n{module}"


def test_verifier_names_the_pass_that_broke_the_ir() -> None:
    net = Net()
    module = net.done(net.relu(net.input(1, 2)))
    with pytest.raises(VerifyError, match="after pass breaks: "):
        run_pipeline(module, "breaks", verify_each=True)
    with pytest.raises(UsageError, match="cannot print IR after 'relu'"):
        run_pipeline(module, "sample", print_ir_after="relu")
