"""Layers that cannot be compiled, with the reason; the importer adds the way on."""

from __future__ import annotations

from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer


@caffe_layer("Filter")
def filter_(layer: Layer) -> Results:
    raise layer.unsupported("keeps a number of items that depends on the data; shapes must be known when compiling")


@caffe_layer("Python")
def python(layer: Layer) -> Results:
    p = layer.p.python_param
    raise layer.unsupported(f"runs Python code of its own (module '{p.module}', class '{p.layer}')")


@caffe_layer("Recurrent")
def recurrent(layer: Layer) -> Results:
    raise layer.unsupported("names only the base of recurrent layers; supported: RNN, LSTM")
