"""How well a compiled model does its task over a data set, beside the float network it was made from."""
