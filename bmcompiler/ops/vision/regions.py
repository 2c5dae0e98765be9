"""Regions of interest: proposing them, and pooling what lies in them (two-stage detectors)."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, Floats, Pair, TensorOp, attr, operand, tensorop
from bmcompiler.ops.vision.detection import greedy_suppression


def _half_up(x: np.ndarray) -> np.ndarray:
    """Nearest whole number, halves away from zero, as C rounds."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


class _RegionPool(TensorOp):
    """Operands and rules of poolings over regions."""

    input = operand(4, FLOAT)
    rois = operand(2)
    one_type = True

    def region_count(self) -> int:
        if self.rois.shape[1] != 5:
            raise self.shape_error(f"rois must be rows image, x0, y0, x1, y1, got {list(self.rois.shape)}")
        return int(self.rois.shape[0])

    def image_of(self, roi: np.ndarray, images: int) -> int:
        image = int(roi[0])
        if not 0 <= image < images:
            raise RuntimeUseError(f"a region names image {image} of {images}")
        return image


def _bins(size: Array, count: int, start: Array | float = 0.0) -> tuple[Array, Array]:
    """First and one past the last position of `count` bins over [start, start + size), as real numbers."""
    step = size / np.float32(count)
    low = np.floor(np.arange(count, dtype=np.float32) * step + start)
    high = np.ceil(np.arange(1, count + 1, dtype=np.float32) * step + start)
    return low, high


def _within(bounds: tuple[Array, Array], limit: int, offset: Array | int = 0) -> tuple[Array, Array]:
    """Bounds moved by `offset`, as indices 0 .. limit."""
    low, high = ((bound + offset).clip(0, limit).astype(np.intp) for bound in bounds)
    return low, high


def _over_bins(
    combine: np.ufunc, x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array], outside: float
) -> Array:
    """`combine` over the bins of planes (C, H, W), (C, PH, PW); 0 in empty bins."""
    for axis, (low, high) in ((2, columns), (1, rows)):
        spare = np.full([1 if i == axis else d for i, d in enumerate(x.shape)], outside, x.dtype)
        # each pair of bounds reduces one bin; what lies between the pairs is thrown away
        bounds = np.stack([low, high], axis=1).ravel()
        x = combine.reduceat(np.concatenate([x, spare], axis=axis), bounds, axis=axis)
        x = x.take(range(0, 2 * len(low), 2), axis=axis)
    filled = (rows[1] > rows[0])[:, None] & (columns[1] > columns[0])
    return np.where(filled, x, x.dtype.type(0))


@tensorop("roi_pool")
class RoiPool(_RegionPool):
    """Largest value in each of size[0] x size[1] bins of every region (Fast R-CNN, arXiv 1504.08083).

    input (N, C, H, W); rois (R, 5): image, x0, y0, x1, y1, in pixels that spatial_scale takes to the input's, rounded
    there; x1 and y1 lie inside. A bin reaches from the floor of its start to the ceiling of its end, an empty one is 0.

    %y = "tensorop.roi_pool"(%x, %r) {size = [2, 2], spatial_scale = 0.0625} : (tensor<1x8x4x4xf32>, tensor<3x5xf32>)
         -> tensor<3x8x2x2xf32>

    Evaluation raises RuntimeUseError for a region of an image that is not there.
    """

    size = attr(Pair)
    spatial_scale = attr(float, 1.0)

    def infer(self) -> TensorType:
        if min(self.size) < 1:
            raise self.shape_error(f"size {list(self.size)} must be positive")
        return TensorType((self.region_count(), self.input.shape[1], *self.size), self.input.dtype)

    def evaluate(self, x: Array, rois: Array) -> Array:
        out = np.zeros(self.type.shape, x.dtype)
        (height, width), limit = self.size, x.shape[2:]
        corners = _half_up(rois[:, 1:].astype(np.float32) * np.float32(self.spatial_scale))
        for roi, (x0, y0, x1, y1), result in zip(rois, corners, out):
            rows = _within(_bins(np.maximum(y1 - y0 + 1, 1), height), limit[0], y0)
            columns = _within(_bins(np.maximum(x1 - x0 + 1, 1), width), limit[1], x0)
            result[:] = _over_bins(np.maximum, x[self.image_of(roi, x.shape[0])], rows, columns, -np.inf)
        return out


@tensorop("ps_roi_pool")
class PsRoiPool(_RegionPool):
    """Mean of each of group x group bins of every region, each bin from a channel of its own (R-FCN, arXiv 1605.06409).

    out[r,c,y,x] is the mean of input channel (c * group + y) * group + x over bin (y, x) of region r. input
    (N, C * group * group, H, W); rois (R, 5): image, x0, y0, x1, y1 in pixels, of which the rounded x0, y0 and
    rounded x1 + 1, y1 + 1 times spatial_scale bound the region, at least 0.1 wide and high. Bins as in roi_pool.

    %y = "tensorop.ps_roi_pool"(%x, %r) {group = 2, spatial_scale = 0.0625} : (tensor<1x8x4x4xf32>, tensor<3x5xf32>)
         -> tensor<3x2x2x2xf32>

    Evaluation raises RuntimeUseError for a region of an image that is not there.
    """

    group = attr(int)
    spatial_scale = attr(float, 1.0)

    def infer(self) -> TensorType:
        channels, group = self.input.shape[1], self.group
        if group < 1 or channels % (group * group):
            raise self.shape_error(f"{channels} channels are no multiple of {group} x {group} bins")
        return TensorType((self.region_count(), channels // group**2, group, group), self.input.dtype)

    def evaluate(self, x: Array, rois: Array) -> Array:
        group, scale, limit = self.group, np.float32(self.spatial_scale), x.shape[2:]
        out = np.zeros(self.type.shape, x.dtype)
        corners = _half_up(rois[:, 1:].astype(np.float32))
        starts, ends = corners[:, :2] * scale, (corners[:, 2:] + 1) * scale
        own = np.arange(group)
        for roi, (x0, y0), (x1, y1), result in zip(rois, starts, ends, out):
            rows = _within(_bins(np.maximum(y1 - y0, np.float32(0.1)), group, y0), limit[0])
            columns = _within(_bins(np.maximum(x1 - x0, np.float32(0.1)), group, x0), limit[1])
            total = _over_bins(np.add, x[self.image_of(roi, x.shape[0])], rows, columns, 0)
            apart = total.reshape(-1, group, group, group, group)
            counts = np.maximum(np.outer(rows[1] - rows[0], columns[1] - columns[0]), 1)
            result[:] = apart[:, own[:, None], own, own[:, None], own] / counts.astype(x.dtype)
        return out


@tensorop("proposal")
class Proposal(TensorOp):
    """The best boxes that a region proposal network finds (Faster R-CNN, arXiv 1506.01497).

    scores (N, 2 * A, H, W), of which the second half is that of objects; deltas (N, 4 * A, H, W); image (1, 3 or more):
    height, width and scale of the image. `anchors` holds A boxes x0, y0, x1, y1 around the first cell; cells lie
    feature_stride pixels apart. A box is its anchor moved by (dx, dy) * size and grown by exp(dw), exp(dh), cut at the
    image; those narrower or lower than min_size * scale go. Of the first pre_nms_count by score those stay whose
    overlap with a better one is at most nms_threshold, and of these the first post_nms_count.

    Results: N * post_nms_count rows image, x0, y0, x1, y1 and their scores (1 axis). Unused rows of an image are 0
    behind its index (Caffe makes fewer rows instead): a box of one pixel that later stages can pool.

    %r, %s = "tensorop.proposal"(%a, %d, %i) {anchors = [0.0, 0.0, 15.0, 15.0], post_nms_count = 9} :
             (tensor<1x2x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x3xf32>) -> (tensor<9x5xf32>, tensor<9xf32>)
    """

    picks = True
    scores = operand(4, FLOAT)
    deltas = operand(4)
    image = operand(2)
    anchors = attr(Floats)
    feature_stride = attr(int, 16)
    min_size = attr(int, 16)
    pre_nms_count = attr(int, 6000)
    post_nms_count = attr(int, 300)
    nms_threshold = attr(float, 0.7)
    one_type = True

    def infer(self) -> list[TensorType]:
        images, _, h, w = self.scores.shape
        count = len(self.anchors) // 4
        wanted = (images, 2 * count, h, w), (images, 4 * count, h, w)
        if count < 1 or len(self.anchors) % 4 or (self.scores.shape, self.deltas.shape) != wanted:
            found = f"{list(self.scores.shape)} and {list(self.deltas.shape)}"
            raise self.shape_error(f"scores and deltas {found} do not fit {len(self.anchors)} / 4 anchors")
        if self.image.shape[0] not in (1, images) or self.image.shape[1] < 3:
            raise self.shape_error(f"image must hold height, width and scale, got {list(self.image.shape)}")
        if min(self.pre_nms_count, self.post_nms_count) < 1:
            raise self.shape_error("counts before and after suppression must be positive")
        rows = images * self.post_nms_count
        return [TensorType((rows, 5), self.scores.dtype), TensorType((rows,), self.scores.dtype)]

    def evaluate(self, scores: np.ndarray, deltas: np.ndarray, image: np.ndarray) -> tuple[Array, Array]:
        images, each = scores.shape[0], self.post_nms_count
        rows = np.zeros((images, each, 5), scores.dtype)
        ratings = np.zeros((images, each), scores.dtype)
        rows[:, :, 0] = np.arange(images)[:, None]
        count = len(self.anchors) // 4
        for index in range(images):
            facts = image[index % image.shape[0]].astype(np.float32)
            boxes, found = self._of_image(scores[index, count:], deltas[index], facts)
            rows[index, : len(boxes), 1:], ratings[index, : len(boxes)] = boxes, found
        return rows.reshape(-1, 5), ratings.reshape(-1)

    def _of_image(self, scores: np.ndarray, deltas: np.ndarray, facts: np.ndarray) -> tuple[Array, Array]:
        ratings = scores.astype(np.float32).transpose(1, 2, 0).ravel()
        boxes = self._moved(deltas.astype(np.float32), facts)
        sizes = boxes[:, 2:] - boxes[:, :2] + np.float32(1)
        large = np.flatnonzero((sizes >= np.float32(self.min_size) * facts[2]).all(axis=1))
        order = large[np.argsort(-ratings[large], kind="stable")][: self.pre_nms_count]
        kept = order[greedy_suppression(boxes[order], self.nms_threshold, border=1.0)[: self.post_nms_count]]
        return boxes[kept], ratings[kept]

    def _moved(self, deltas: np.ndarray, facts: np.ndarray) -> np.ndarray:
        """Boxes (H * W * A, 4) within the image."""
        _, h, w = deltas.shape
        anchors = np.array(self.anchors, np.float32).reshape(-1, 4)
        y, x = np.mgrid[:h, :w].astype(np.float32) * np.float32(self.feature_stride)
        placed = (anchors + np.stack([x, y, x, y], axis=-1)[:, :, None]).reshape(-1, 4)
        shift = deltas.reshape(-1, 4, h, w).transpose(2, 3, 0, 1).reshape(-1, 4)
        size = placed[:, 2:] - placed[:, :2] + np.float32(1)
        middle = placed[:, :2] + size * np.float32(0.5) + shift[:, :2] * size
        half = np.exp(shift[:, 2:]) * size * np.float32(0.5)
        last = np.tile(facts[[1, 0]] - np.float32(1), 2)
        return np.minimum(np.concatenate([middle - half, middle + half], axis=1), last).clip(0)
