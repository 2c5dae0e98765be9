"""The onnx package's own test suite, run on the interpreter and on simulated chips."""
