"""Sophon BM1684: instruction tables, command builder, text form, float arithmetic of the chip; no kernels yet."""
