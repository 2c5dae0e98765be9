"""Sophon BM1684: instruction tables, command builder, text form, and the chip's float arithmetic; kernels do not exist yet."""
