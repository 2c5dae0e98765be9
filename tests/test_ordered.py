"""Float sums in order, against a loop over the products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bmcompiler.numeric.ordered import combine, ordered_product


@pytest.fixture(autouse=True)
def _ordinary_results() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("accumulators", [2, 4])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (1, 3), (3, 2), (5, 7), (1, 40), (9, 600), (2, 2050)])
@pytest.mark.parametrize("depth", [1, 3, 64, 133])
def test_every_product_is_added_in_its_turn(accumulators: int, shape: tuple[int, int], depth: int) -> None:
    rng = np.random.default_rng(depth)
    a, b = (rng.normal(size=(depth, size)).astype(np.float32) for size in shape)
    start = rng.normal(size=(accumulators, *shape)).astype(np.float32)
    sums = start.copy()
    for k in range(depth):
        sums[k % accumulators] += a[k, :, None] * b[k, None, :]
    assert np.array_equal(ordered_product(a, b, accumulators, start), combine(sums))


def test_sums_that_may_meet_denormals_are_the_same_otherwise() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(50, size)).astype(np.float32) for size in (3, 4))
    plain = ordered_product(a, b, 2)
    tiny = [np.pad(x, ((0, 1), (0, 0)), constant_values=1e-30) for x in (a, b)]  # its products are 0
    assert np.array_equal(ordered_product(*tiny, 2), plain)


def test_signs_of_zero_products_change_no_bit() -> None:
    a, b = (np.array(rows, np.float32) for rows in ([[-0.0, 0.0], [1.0, -1.0]], [[1.0, -2.0, 0.0], [-0.0, 0.0, -0.0]]))
    start = np.full((2, 1, 1), -0.0, np.float32)
    assert not ordered_product(a, b, 2, start).view(np.uint32).any()
