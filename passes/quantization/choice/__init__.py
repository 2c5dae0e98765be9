"""How each layer computes, chosen by what that does to the outputs of the net."""
