"""Shapes with ranges: which programs they ask for, and what is said of those that cannot be read."""

import pytest

from bmcompiler.errors import UsageError
from bmcompiler.options import Options
from bmcompiler.sizes.syntax import MOST_PROGRAMS, parse_one, parse_shapes


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("[[1,3,224,224]]", [[(1, 3, 224, 224)]]),
        ("[1, 3]", [[(1, 3)]]),
        ("[[1,3],[]]", [[(1, 3), ()]]),
        ("[[1..3,8]]", [[(3, 8)], [(2, 8)], [(1, 8)]]),
        ("[[1,32..128:*2]]", [[(1, 128)], [(1, 64)], [(1, 32)]]),
        ("[[1,10..100:40]]", [[(1, 100)], [(1, 90)], [(1, 50)], [(1, 10)]]),
        ("[[1,{64,32,64}]]", [[(1, 64)], [(1, 32)]]),
        ("[[1,n={32,64}],[1,n]]", [[(1, 64), (1, 64)], [(1, 32), (1, 32)]]),
        ("[[1,n],[1,n=32..64:32]]", [[(1, 64), (1, 64)], [(1, 32), (1, 32)]]),
        ("[[1..2,{3,5}]]", [[(2, 5)], [(2, 3)], [(1, 5)], [(1, 3)]]),
        ("[[7..7]]", [[(7,)]]),
    ],
)
def test_programs_of_a_text(text: str, programs: object) -> None:
    assert parse_shapes(text) == programs
    assert Options(shapes=text).programs == programs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must look like"),
        ("abc", "must look like"),
        ("[[1],2]", "must look like"),
        ("[[1,5..3]]", "'5..3' in shapes.*ends at 3, below its start 5"),
        ("[[1,x]]", "'x' in shapes.*a name without sizes"),
        ("[[a=3,a=4]]", "'a=4' in shapes.*second time"),
        ("[[1,{3,}]]", r"'\{3,\}' in shapes.*lacks a number"),
        ("[[1..4:0]]", "'1..4:0' in shapes.*leads nowhere"),
        ("[[1..4:*1]]", "'1..4:\\*1' in shapes.*leads nowhere"),
        ("[[1,-1]]", "'-1' in shapes.*no size, range or set"),
        ("[[1,1.5]]", "'1.5' in shapes.*no range"),
        ("[[0..4]]", "'0..4' in shapes.*from 1 to"),
        ("[[1..99999999999]]", "from 1 to"),
        ("[[1..16,3,320..640:32,320..640:32]]", "1,936 programs.*16 x 11 x 11.*one name"),
        ("[[1..1000]]", f"1,000 programs, at most {MOST_PROGRAMS}"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_shapes(text)


def test_one_program_is_not_several() -> None:
    assert parse_one("[[1,3]]") == [(1, 3)]
    with pytest.raises(UsageError, match="those of 4 programs, one is meant here"):
        parse_one("[[1..4,3]]")
