"""Boxes: decoding and non-maximum suppression of single-shot detectors."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ops.base import FLOAT, TensorOp, attr, operand, tensorop

_CODES = ("corner", "center_size", "corner_size")
_ROW = 7
"""image, class, score, x0, y0, x1, y1"""


@tensorop("detection_output")
class DetectionOutput(TensorOp):
    """Detections of SSD networks: decoded boxes, suppressed per class, the best `keep_top_k` of each image.

    offsets (N, P * L * 4), L = 1 with share_location, else num_classes; scores (N, P * num_classes);
    priors (1, 2, P * 4): boxes x0, y0, x1, y1 as fractions of the image, then their variances v (1 with
    variance_encoded_in_target, when they may be left out: (1, 1, P * 4)). The result is (1, 1, R, 7) with rows image,
    class, score, x0, y0, x1, y1.

    Boxes from offset l and prior p by `code_type`:
    corner: p + v * l. corner_size: p + v * l * (size of p).
    center_size: centre = centre of p + v * l[0:2] * (size of p), size = exp(v * l[2:4]) * (size of p).

    Per image and class other than background_label_id: boxes of a score above confidence_threshold in descending order
    (of equal scores the first prior first), the first `top_k` of them (-1: all); each is kept unless its overlap
    (intersection over union) with a kept one is above the threshold, which begins at nms_threshold and is multiplied
    by `eta` after every kept box while above 0.5. When more than keep_top_k (-1: all) boxes of an image are left, those
    of the best scores stay. Rows go by image, class, descending score.

    R is constant, N * keep_top_k, or what top_k allows where that is less: unused rows at the end are -1, 0, 0, ...
    (Caffe makes fewer rows instead; OpenCV fills with zeros, and lately goes by score before class.)

    %y = "tensorop.detection_output"(%l, %c, %p) {code_type = "center_size", keep_top_k = 2, num_classes = 2} :
         (tensor<1x24xf32>, tensor<1x12xf32>, tensor<1x2x24xf32>) -> tensor<1x1x2x7xf32>
    """

    picks = True
    offsets = operand(2, FLOAT)
    scores = operand(2)
    priors = operand(3)
    num_classes = attr(int)
    share_location = attr(bool, True)
    background_label_id = attr(int, 0)
    code_type = attr(str, "corner")
    variance_encoded_in_target = attr(bool, False)
    nms_threshold = attr(float, 0.3)
    eta = attr(float, 1.0)
    top_k = attr(int, -1)
    keep_top_k = attr(int, -1)
    confidence_threshold = attr(float, -np.inf)
    one_type = True

    def infer(self) -> TensorType:
        if self.code_type not in _CODES:
            raise self.invalid(f"unknown code_type '{self.code_type}'; known: {', '.join(_CODES)}")
        if self.num_classes < 1 or not 0 < self.eta <= 1:
            raise self.invalid(f"num_classes {self.num_classes} must be positive and eta {self.eta} in 0 .. 1")
        images, priors = self.offsets.shape[0], self._priors()
        expected = {
            "offsets": (images, priors * self._box_sets() * 4),
            "scores": (images, priors * self.num_classes),
            "priors": (1, 1 if self._without_variances() else 2, priors * 4),
        }
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise self.shape_error(f"{name} must have shape {list(shape)} for {priors} priors, got {list(found)}")
        return TensorType((1, 1, images * self._rows_per_image(), _ROW), self.offsets.dtype)

    def evaluate(self, offsets: np.ndarray, scores: np.ndarray, priors: np.ndarray) -> np.ndarray:
        images, count = offsets.shape[0], self._priors()
        apart = offsets.astype(np.float32, copy=False).reshape(images, count, self._box_sets(), 4)
        ratings = scores.astype(np.float32, copy=False).reshape(images, count, self.num_classes)
        table = priors.astype(np.float32, copy=False).reshape(-1, count, 4)
        anchors, variances = table[0], np.ones_like(table[0]) if self.variance_encoded_in_target else table[1]
        found = [
            self._of_image(image, _decoded(self.code_type, apart[image], anchors, variances), ratings[image])
            for image in range(images)
        ]
        rows = np.zeros((images * self._rows_per_image(), _ROW), self.type.numpy)
        rows[:, 0] = -1
        filled = np.concatenate(found)
        rows[: len(filled)] = filled
        return rows.reshape(1, 1, -1, _ROW)

    def _of_image(self, image: int, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Rows of one image; boxes (P, L, 4), scores (P, num_classes)."""
        rows = [np.zeros((0, _ROW), np.float32)]
        for label in self.foreground():
            of_class = boxes[:, 0 if self.share_location else label]
            kept = self._suppressed(of_class, scores[:, label])
            part = np.empty((len(kept), _ROW), np.float32)
            part[:, 0], part[:, 1], part[:, 2], part[:, 3:] = image, label, scores[kept, label], of_class[kept]
            rows.append(part)
        found = np.concatenate(rows)
        if 0 <= self.keep_top_k < len(found):
            best = np.argsort(-found[:, 2], kind="stable")[: self.keep_top_k]
            found = found[best]
            found = found[np.argsort(found[:, 1], kind="stable")]
        return found

    def _suppressed(self, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        candidates = np.flatnonzero(scores > np.float32(self.confidence_threshold))
        order = candidates[np.argsort(-scores[candidates], kind="stable")]
        if self.top_k > -1:
            order = order[: self.top_k]
        return order[greedy_suppression(boxes[order], self.nms_threshold, self.eta)]

    def foreground(self) -> list[int]:
        """The classes other than the background."""
        return [label for label in range(self.num_classes) if label != self.background_label_id]

    def _without_variances(self) -> bool:
        return bool(self.variance_encoded_in_target and self.priors.shape[1] == 1)

    def _priors(self) -> int:
        return self.priors.shape[2] // 4

    def _box_sets(self) -> int:
        return 1 if self.share_location else self.num_classes

    def _rows_per_image(self) -> int:
        per_class = self._priors() if self.top_k < 0 else min(self.top_k, self._priors())
        most = per_class * len(self.foreground())
        return most if self.keep_top_k < 0 else min(self.keep_top_k, most)


def _decoded(code_type: str, offsets: np.ndarray, priors: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Boxes (P, L, 4) of offsets (P, L, 4), priors and variances (P, 4)."""
    shift = variances[:, None] * offsets
    if code_type == "corner":
        return priors[:, None] + shift
    size = priors[:, 2:] - priors[:, :2]
    if code_type == "corner_size":
        return priors[:, None] + shift * np.tile(size, 2)[:, None]
    centre = (priors[:, :2] + priors[:, 2:]) * np.float32(0.5)
    middle = shift[..., :2] * size[:, None] + centre[:, None]
    half = np.exp(shift[..., 2:]) * size[:, None] * np.float32(0.5)
    return np.concatenate([middle - half, middle + half], axis=-1)


def greedy_suppression(boxes: np.ndarray, threshold: float, eta: float = 1.0, border: float = 0.0) -> np.ndarray:
    """Positions of the boxes that stay, of (K, 4) corner boxes x0, y0, x1, y1 in descending order of score.

    A box goes when its intersection over union with one that stays is above the threshold, which shrinks by the factor
    `eta` after each box that stays, while it is above 0.5. `border` is added to widths and heights (1 where x1 and y1
    name the last pixel).
    """
    edge = boxes.dtype.type(border)
    sizes = np.maximum(boxes[:, 2:] - boxes[:, :2] + edge, 0)
    areas = sizes[:, 0] * sizes[:, 1]
    overlap = np.zeros(len(boxes), boxes.dtype)
    kept, at = [], 0
    while at < len(boxes):
        kept.append(at)
        box, rest = boxes[at], boxes[at + 1 :]
        common = np.maximum(np.minimum(rest[:, 2:], box[2:]) - np.maximum(rest[:, :2], box[:2]) + edge, 0)
        shared = common[:, 0] * common[:, 1]
        union = areas[at + 1 :] + areas[at] - shared
        ratios = np.divide(shared, union, out=np.zeros_like(shared), where=shared > 0)
        np.maximum(overlap[at + 1 :], ratios, out=overlap[at + 1 :])
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        free = overlap[at + 1 :] <= threshold
        at = at + 1 + int(free.argmax()) if free.any() else len(boxes)
    return np.array(kept, np.intp)
