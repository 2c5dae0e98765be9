"""What a bundle will take on a board, before anything is compiled: bytes over the bus, and sums of products.

Decoding reads all weights and the caches once for a token; a prompt is bound by its products, or by the same weights.
These are bounds (bm1684x-llm.md 9): the programs of a compiled bundle take a little longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bmcompiler.analysis.timing_profile import named_profiles
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.llm.config import Architecture
from bmcompiler.llm.precision import Precision

_HALF = 2


@dataclass(frozen=True)
class Estimate:
    """Bytes and seconds of a bundle.

    Attributes:
        weights: bytes of all blocks. head: of what gives the scores. table: of the embeddings, of which a row is read.
        cache: bytes of all keys and values. launches: of nets, for a token.
        first: seconds until the first token of a prompt of full length. token: seconds of each one more.
    """

    weights: int
    head: int
    table: int
    cache: int
    launches: int
    first: float
    token: float

    @property
    def memory(self) -> int:
        """Bytes of device memory for weights and caches."""
        return self.weights + self.head + self.table + self.cache


def estimate(facts: Architecture, precision: Precision, length: int, cache: int | None = None) -> Estimate:
    """Bounds for prompts of `length` tokens and a cache of `cache` (default: as many), launches by board times."""
    rows, profiles = cache or length, named_profiles(LLM_TARGET)
    profile, launch = profiles["vendor"], profiles["silicon"].launch
    half = 4 if precision.dtype == "f32" else _HALF
    products = list(_products(facts))
    weights = sum(weight_bytes(outputs, depth, precision, precision.bits) for outputs, depth in products)
    weights += facts.layers * (2 * facts.hidden * half)
    head = weight_bytes(facts.vocabulary, facts.hidden, precision, precision.head_bits)
    row = 2 * facts.kv_heads * facts.head_dim * half
    cached = facts.layers * rows * row
    launches = 2 + facts.layers
    bus = profile.strided_bytes_per_cycle * profile.clock_hz
    launching = launches * launch * 1e-9
    token = (weights + head + cached) / bus + launching
    macs = length * sum(outputs * depth for outputs, depth in products)
    macs += facts.layers * 2 * length * length * facts.heads * facts.head_dim
    first = max(macs / profile.half_products / profile.clock_hz, weights / bus) + head / bus + launching
    table = 0 if facts.tied and precision.head_bits is None else facts.vocabulary * facts.hidden * half
    return Estimate(weights, head, table, cached, launches, first, token)


def weight_bytes(outputs: int, depth: int, precision: Precision, bits: int | None) -> int:
    """Bytes of a product's weights, with scales and zero points."""
    if bits is None:
        return outputs * depth * (4 if precision.dtype == "f32" else _HALF)
    group = precision.group_size or depth
    groups = -(-depth // group)
    return outputs * (-(-depth * bits // 8) + groups * (_HALF + (0 if precision.symmetric else 1)))


def _products(facts: Architecture) -> Iterator[tuple[int, int]]:
    """(outputs, inputs) of the linear layers of all blocks."""
    queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    for _ in range(facts.layers):
        yield queries + 2 * keys, facts.hidden
        yield facts.hidden, queries
        yield 2 * facts.inner, facts.hidden
        yield facts.hidden, facts.inner
