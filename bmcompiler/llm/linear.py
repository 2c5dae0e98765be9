"""The linear layers of a checkpoint: floats, or the codes of GPTQ, AWQ and compressed-tensors as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.llm.checkpoint import Checkpoint
from bmcompiler.numeric.arrays import Array, Bytes, Floats, Indices, Ints
from bmcompiler.numeric.packed_weights import PackedWeights, dequantized, groups_of, packed, rows_of

_COMPRESSED, _FP8 = "compressed-tensors", "fp8"
_STRATEGIES = ("tensor", "channel")
"""Who shares a scale of fp8."""
_EIGHT_BITS = np.dtype(ml_dtypes.float8_e4m3fn)
_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Which nibble of a word holds column 0, 1, .. of eight."""


@dataclass(frozen=True)
class LinearLayer:
    """y[n] = sum_k x[order[k]] * weight[n, k] + bias[n].

    Attributes:
        weight: (N, K) floats of the checkpoint, or codes. depth: K. bias: (N) or None.
        order: (K) which input each column belongs to; None where they are in order.
    """

    weight: Array | PackedWeights
    depth: int
    bias: Floats | None = None
    order: Indices | None = None

    @property
    def outputs(self) -> int:
        """N."""
        return len(self.weight.codes if isinstance(self.weight, PackedWeights) else self.weight)

    def dense(self) -> Floats:
        """The weights (N, K) in f32, columns in the order of the inputs."""
        if not isinstance(self.weight, PackedWeights):
            return self.weight.astype(np.float32)
        found = dequantized(self.weight, self.depth, "f32")
        if self.order is None:
            return found
        out = np.empty_like(found)
        out[:, self.order] = found
        return out

    def rows(self, part: slice | Indices) -> LinearLayer:
        """The layer of some outputs, or of all in another order."""
        weight = rows_of(self.weight, part) if isinstance(self.weight, PackedWeights) else self.weight[part]
        return replace(self, weight=weight, bias=None if self.bias is None else self.bias[part])


@dataclass(frozen=True)
class CodeScheme:
    """How a checkpoint is quantized.

    Attributes:
        method: "gptq", "awq", "compressed-tensors" or "fp8". bits: of a code.
        group_size: inputs of a group, 0 for all; of fp8 as many outputs share a scale, too.
        added: to zero points as they are stored.
    """

    method: str
    bits: int
    group_size: int
    added: int


def scheme_of(given: Mapping[str, Any] | None, file: Path) -> CodeScheme | None:
    """By `quantization_config`; None where weights are floats. Raises UnsupportedError for what is not known."""
    if given is None:
        return None
    method, bits, group = given.get("quant_method"), given.get("bits"), given.get("group_size")
    if method == _COMPRESSED:
        return _compressed_scheme(given, file)
    if method == _FP8:
        return CodeScheme(_FP8, 8, _block_size(given, file), 0)
    if method not in ("gptq", "awq"):
        raise UnsupportedError(
            f"quantization method '{method}' is not supported",
            file=file,
            remedy="give one of gptq, awq, compressed-tensors or fp8, or the float model, which is quantized here",
        )
    known = (4, 8) if method == "gptq" else (4,)
    if type(bits) is not int or bits not in known:
        raise UnsupportedError(
            f"{method} of {bits} bits is not supported", file=file, remedy=f"known are {' and '.join(map(str, known))}"
        )
    if type(group) is not int or not (group == -1 or group > 0):
        raise FileFormatError(f"'group_size' must be a positive integer or -1, got {group}", file=file)
    if method == "awq" and str(given.get("version", "gemm")).lower() != "gemm":
        raise UnsupportedError(
            f"awq of version '{given.get('version')}' is not supported", file=file, remedy="use gemm"
        )
    added = int(method == "gptq" and given.get("checkpoint_format", "gptq") != "gptq_v2")
    return CodeScheme(method, bits, max(group, 0), added)


def _block_size(given: Mapping[str, Any], file: Path) -> int:
    """Outputs and inputs that share a scale of fp8; 0 where scales are of outputs or of the whole tensor."""
    sizes = given.get("weight_block_size")
    if sizes is None:
        return 0
    if not isinstance(sizes, list) or len(sizes) != 2 or sizes[0] != sizes[1] or type(sizes[0]) is not int:
        raise UnsupportedError(f"blocks of {sizes} weights are not supported", file=file, remedy="known are squares")
    return max(sizes[0], 0)


def _compressed_scheme(given: Mapping[str, Any], file: Path) -> CodeScheme:
    """Of packed weights with one configuration for all layers that are quantized."""
    groups = given.get("config_groups")
    only = next(iter(groups.values())) if isinstance(groups, dict) and len(groups) == 1 else None
    weights = only.get("weights") if isinstance(only, dict) else None
    known = isinstance(only, dict) and isinstance(weights, dict) and not only.get("input_activations")
    weights = weights if isinstance(weights, dict) else {}
    bits, strategy = weights.get("num_bits"), weights.get("strategy")
    if (given.get("format"), weights.get("type"), bits) == ("float-quantized", "float", 8) and strategy in _STRATEGIES:
        return CodeScheme(_FP8, 8, 0, 0)
    known = known and weights.get("type") == "int" and strategy in ("group", "channel")
    size = weights.get("group_size") if strategy == "group" else 0
    known = known and bits in (4, 8) and given.get("format") == "pack-quantized"
    if not known or type(bits) is not int or type(size) is not int or size < 0:
        raise UnsupportedError(
            f"compressed-tensors of format '{given.get('format')}' with these settings is not supported",
            file=file,
            remedy="known are fp8, and packed integers of 4 and 8 bits by group or channel, activations in float",
        )
    return CodeScheme(_COMPRESSED, bits, size, 0)


def check_linear(
    checkpoint: Checkpoint, name: str, outputs: int, depth: int, scheme: CodeScheme | None, bias: bool
) -> None:
    """Whether the tensors of a layer are there and fit. Raises FileFormatError."""
    if bias:
        checkpoint.place(f"{name}.bias", [outputs])
    if scheme is None or f"{name}.weight" in checkpoint:
        if checkpoint.place(f"{name}.weight", [outputs, depth]).kind == "F8_E4M3":
            _scale_of(checkpoint, name, outputs, depth, scheme)
        return
    per, groups = 32 // scheme.bits, groups_of(depth, scheme.group_size)
    if scheme.method == _COMPRESSED:
        checkpoint.place(f"{name}.weight_packed", [outputs, -(-depth // per)])
        checkpoint.place(f"{name}.weight_scale", [outputs, groups])
        if f"{name}.weight_zero_point" in checkpoint:
            checkpoint.place(f"{name}.weight_zero_point", [-(-outputs // per), groups])
        return
    packed_shape = [depth // per, outputs] if scheme.method == "gptq" else [depth, outputs // per]
    checkpoint.place(f"{name}.qweight", packed_shape)
    checkpoint.place(f"{name}.qzeros", [groups, outputs // per])
    checkpoint.place(f"{name}.scales", [groups, outputs])


def read_linear(checkpoint: Checkpoint, name: str, depth: int, scheme: CodeScheme | None, bias: bool) -> LinearLayer:
    """A layer of a checkpoint that `check_linear` has seen. Raises FileFormatError, UnsupportedError."""
    added = checkpoint.read(f"{name}.bias").astype(np.float32) if bias else None
    if scheme is None or f"{name}.weight" in checkpoint:
        return LinearLayer(_floats(checkpoint, name, scheme), depth, added)
    if scheme.method == _COMPRESSED:
        return _compressed(checkpoint, name, depth, scheme, added)
    rows, order = 0 if scheme.method == "gptq" else 1, _AWQ_ORDER if scheme.method == "awq" else None
    codes = _unpacked(checkpoint.read(f"{name}.qweight"), scheme.bits, rows, order).T
    zeros = _unpacked(checkpoint.read(f"{name}.qzeros"), scheme.bits, 1, order).T
    # a zero point of 0 was stored as -1, of which the low bits are left
    zeros = zeros + np.uint8(scheme.added) & np.uint8(2**scheme.bits - 1)
    permuted = _order(checkpoint, name, depth, scheme)
    codes = codes if permuted is None else codes[:, permuted]
    scale = np.ascontiguousarray(checkpoint.read(f"{name}.scales").T)
    weights = PackedWeights(
        packed(codes, scheme.bits), scale, np.ascontiguousarray(zeros), scheme.bits, scheme.group_size
    )
    return LinearLayer(weights, depth, added, permuted)


def _floats(checkpoint: Checkpoint, name: str, scheme: CodeScheme | None) -> Array:
    """Weights (N, K); of 8 bits times their scales, in f32."""
    weight = checkpoint.read(f"{name}.weight")
    if weight.dtype != _EIGHT_BITS:
        return weight
    n, depth = weight.shape
    scale = checkpoint.read(_scale_of(checkpoint, name, n, depth, scheme)).astype(np.float32)
    if scheme is not None and scheme.group_size:
        wide = np.repeat(scale, scheme.group_size, axis=0)[:n]
        return weight.astype(np.float32) * np.repeat(wide, scheme.group_size, axis=1)[:, :depth]
    return weight.astype(np.float32) * scale.reshape(-1, 1)


def _scale_of(checkpoint: Checkpoint, name: str, outputs: int, depth: int, scheme: CodeScheme | None) -> str:
    """Name of the scales of weights of 8 bits. Raises FileFormatError."""
    found = f"{name}.weight_scale_inv" if f"{name}.weight_scale_inv" in checkpoint else f"{name}.weight_scale"
    size = scheme.group_size if scheme is not None else 0
    blocks = [(-(-outputs // size), -(-depth // size))] if size else [(), (1,), (outputs,), (outputs, 1)]
    checkpoint.place(found, *blocks)
    return found


def _compressed(checkpoint: Checkpoint, name: str, depth: int, scheme: CodeScheme, bias: Floats | None) -> LinearLayer:
    """Codes packed along the inputs, zero points along the outputs; without these codes are signed."""
    codes = _unpacked(checkpoint.read(f"{name}.weight_packed"), scheme.bits, 1, None)[:, :depth]
    permuted = _order(checkpoint, name, depth, scheme, "weight_g_idx")
    scale, zeros = np.ascontiguousarray(checkpoint.read(f"{name}.weight_scale")), None
    if f"{name}.weight_zero_point" in checkpoint:
        zeros = _unpacked(checkpoint.read(f"{name}.weight_zero_point"), scheme.bits, 0, None)[: len(codes)]
        zeros = np.ascontiguousarray(zeros)
    codes = codes if permuted is None else codes[:, permuted]
    return LinearLayer(
        PackedWeights(packed(codes, scheme.bits), scale, zeros, scheme.bits, scheme.group_size), depth, bias, permuted
    )


def _unpacked(words: Array, bits: int, axis: int, order: tuple[int, ...] | None) -> Bytes:
    """Codes of int32 words, which become 32 / bits times as many along an axis."""
    shifts = np.asarray(order or range(32 // bits), np.uint32) * np.uint32(bits)
    moved = np.moveaxis(words.view(np.uint32), axis, -1)
    codes = (moved[..., None] >> shifts & np.uint32(2**bits - 1)).astype(np.uint8)
    return np.moveaxis(codes.reshape(*moved.shape[:-1], -1), -1, axis)


def _order(checkpoint: Checkpoint, name: str, depth: int, scheme: CodeScheme, kind: str = "g_idx") -> Indices | None:
    """The inputs group by group, where a checkpoint was quantized in the order of their activity (`desc_act`)."""
    if f"{name}.{kind}" not in checkpoint:
        return None
    place = checkpoint.place(f"{name}.{kind}", [depth])
    groups = checkpoint.read(f"{name}.{kind}").astype(np.int64)
    plain: Ints = np.arange(depth) // (scheme.group_size or depth)
    if np.array_equal(groups, plain):
        return None
    order = np.argsort(groups, kind="stable")
    if not np.array_equal(groups[order], plain):
        raise UnsupportedError(
            f"tensor '{name}.{kind}' has groups that do not hold {scheme.group_size} inputs each",
            file=place.file,
            remedy="quantize the model with desc_act false",
        )
    return order
