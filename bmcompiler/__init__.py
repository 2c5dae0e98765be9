"""bmcompiler: compiler, runtime and simulators for neural accelerators without an open toolchain."""
