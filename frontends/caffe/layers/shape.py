"""Layers that move elements: Concat, Slice, Flatten, Reshape, Crop, Permute, ShuffleChannel, Reorg, Tile."""

from __future__ import annotations

from math import prod

from bmcompiler.frontends.caffe.layer import MAX_ELEMENTS, Layer, Results, caffe_layer


@caffe_layer("Concat")
def concat(layer: Layer) -> Results:
    p = layer.p.concat_param
    layer.expect_inputs(1, None)
    axis = layer.axis(p.concat_dim if p.HasField("concat_dim") else p.axis)
    return layer.b.concat(*layer.inputs, axis=axis) if len(layer.inputs) > 1 else layer.x


@caffe_layer("Slice")
def slice_(layer: Layer) -> Results:
    """Pieces along `axis` cut at slice_point, or equal pieces without it."""
    p, x, tops = layer.p.slice_param, layer.only, len(layer.p.top)
    axis = layer.axis(p.slice_dim if p.HasField("slice_dim") else p.axis)
    dim, points = x.shape[axis], list(p.slice_point)
    if tops == 1 and not points:
        return x
    if points:
        if len(points) != tops - 1:
            raise layer.bad(f"{tops} tops need {tops - 1} slice points, got {len(points)}")
    elif dim % tops:
        raise layer.shape_error(f"axis {axis} with {dim} elements cannot be cut into {tops} equal pieces")
    else:
        points = list(range(dim // tops, dim, dim // tops))
    sizes = [end - start for start, end in zip([0, *points], [*points, dim])]
    if min(sizes) < 1:
        raise layer.shape_error(f"slice points {points} do not ascend inside the {dim} elements of axis {axis}")
    return layer.b.create("split", [x], {"axis": axis, "sizes": sizes}).results


@caffe_layer("Flatten")
def flatten(layer: Layer) -> Results:
    p, x = layer.p.flatten_param, layer.only
    start, end = layer.axis(p.axis), layer.axis(p.end_axis)
    if end < start:
        raise layer.bad(f"end_axis {p.end_axis} lies before axis {p.axis}")
    return layer.reshape(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@caffe_layer("Reshape")
def reshape(layer: Layer) -> Results:
    """New dimensions for axes axis .. axis+num_axes: 0 keeps the input's dimension, one -1 takes what is left."""
    p, x = layer.p.reshape_param, layer.only
    rank = x.type.rank
    start = p.axis if p.axis >= 0 else rank + p.axis + 1
    end = rank if p.num_axes == -1 else start + p.num_axes
    if not 0 <= start <= end <= rank:
        raise layer.bad(f"axis {p.axis} with num_axes {p.num_axes} does not fit {list(x.shape)}")
    wanted = list(p.shape.dim)
    for i, dim in enumerate(wanted):
        if dim == 0:
            if start + i >= rank:
                raise layer.shape_error(f"dimension {i} copies axis {start + i}, which {list(x.shape)} does not have")
            wanted[i] = x.shape[start + i]
    shape = [*x.shape[:start], *wanted, *x.shape[end:]]
    if shape.count(-1) > 1 or min(shape, default=1) < -1:
        raise layer.bad(f"has the impossible shape {list(p.shape.dim)}")
    if -1 in shape:
        known = -prod(shape)
        if known < 1 or prod(x.shape) % known:
            raise layer.shape_error(f"cannot reshape {list(x.shape)} to {shape}")
        shape[shape.index(-1)] = prod(x.shape) // known
    return layer.reshape(x, shape)


@caffe_layer("Crop")
def crop(layer: Layer) -> Results:
    """The window of bottom 0 that has the size of bottom 1 on axes from `axis` on, beginning at `offset`."""
    p = layer.p.crop_param
    layer.expect_inputs(2, 2)
    x, like = layer.inputs
    axis, offsets = layer.axis(p.axis), list(p.offset) or [0]
    if like.type.rank != x.type.rank:
        raise layer.shape_error(f"reference {list(like.shape)} has another number of axes than {list(x.shape)}")
    cropped = x.type.rank - axis
    if len(offsets) not in (1, cropped):
        raise layer.bad(f"needs 1 or {cropped} offsets, got {len(offsets)}")
    offsets = [0] * axis + (offsets * cropped if len(offsets) == 1 else offsets)
    ends = [start + (like if i >= axis else x).shape[i] for i, start in enumerate(offsets)]
    if any(end > dim for end, dim in zip(ends, x.shape)):
        raise layer.shape_error(f"window {offsets} to {ends} does not lie inside {list(x.shape)}")
    if tuple(ends) == x.shape and not any(offsets):
        return x
    return layer.b.slice(x, starts=offsets, ends=ends, steps=[1] * len(ends))


@caffe_layer("Permute")
def permute(layer: Layer) -> Results:
    """Axes that `order` leaves out follow in their old order."""
    x = layer.only
    order = list(layer.p.permute_param.order)
    if len(set(order)) != len(order) or any(axis >= x.type.rank for axis in order):
        raise layer.bad(f"order {order} is no order of {x.type.rank} axes")
    order += [axis for axis in range(x.type.rank) if axis not in order]
    return x if order == sorted(order) else layer.b.permute(x, order=order)


@caffe_layer("ShuffleChannel")
def shuffle_channel(layer: Layer) -> Results:
    """Channels read as (group, C / group) and written as (C / group, group)."""
    x, group = layer.only, layer.p.shuffle_channel_param.group
    if x.type.rank < 2 or group < 1 or x.shape[1] % group:
        raise layer.shape_error(f"group {group} does not divide the channels of {list(x.shape)}")
    n, c, *rest = x.shape
    apart = layer.b.reshape(x, shape=(n, group, c // group, *rest))
    swapped = layer.b.permute(apart, order=(0, 2, 1, *range(3, 3 + len(rest))))
    return layer.b.reshape(swapped, shape=x.shape)


@caffe_layer("Tile")
def tile(layer: Layer) -> Results:
    p, x = layer.p.tile_param, layer.only
    axis = layer.axis(p.axis)
    if p.tiles < 1 or prod(x.shape) * p.tiles > MAX_ELEMENTS:
        raise layer.bad(f"cannot repeat {list(x.shape)} {p.tiles} times")
    reps = [p.tiles if i == axis else 1 for i in range(x.type.rank)]
    return layer.b.tile(x, reps=reps) if p.tiles > 1 else x


@caffe_layer("Reorg")
def reorg(layer: Layer) -> Results:
    """Blocks of stride x stride pixels to channels, as the YOLO v2 branches do it.

    Their code reads the input as if it had C / stride**2 channels of stride times the height and width, and writes the
    place in a block as the slowest axis. `reverse` undoes that.
    """
    p, x = layer.p.reorg_param, layer.only
    (n, c, h, w), s = layer.image(), p.stride
    if s < 1 or c % (s * s) or (not p.reverse and (h % s or w % s)):
        raise layer.shape_error(f"stride {s} does not divide {list(x.shape)} (its square the channels)")
    if p.reverse:
        apart = layer.b.reshape(x, shape=(n, s, s, c // (s * s), h, w))
        return layer.reshape(layer.b.permute(apart, order=(0, 3, 4, 1, 5, 2)), (n, c // (s * s), h * s, w * s))
    apart = layer.b.reshape(x, shape=(n, c // (s * s), h, s, w, s))
    return layer.reshape(layer.b.permute(apart, order=(0, 3, 5, 1, 2, 4)), (n, c * s * s, h // s, w // s))


@caffe_layer("BatchReindex")
def batch_reindex(layer: Layer) -> Results:
    """Items of bottom 0 in the order that bottom 1 names, which may leave out and repeat."""
    layer.expect_inputs(2, 2)
    x, order = layer.inputs
    if order.type.rank != 1:
        raise layer.shape_error(f"takes one axis of indices, got {list(order.shape)}")
    return layer.b.gather(x, layer.b.cast(order, dtype="i32"), axis=0)
