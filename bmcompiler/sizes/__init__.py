"""Networks for sizes that vary: what is said of them, which padding changes nothing, and which program takes an input.

`syntax` reads shapes with ranges as the shapes of several programs. `padding` proves on the IR along which axes an
input may be filled up to the next larger program; `flow` says what each op does with such an axis (`marks`), and
`fills` what becomes of what is filled in. `note` is what a model file says of it, `choice` what a
runtime does with that.
"""
