"""Sophon BM1684: instruction tables, command builder, text form, and the float arithmetic of the chip; no kernels yet."""
