"""A Caffe layer of our own, gain * |a - b|, for bmcompiler."""
