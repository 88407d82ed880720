"""Lower ATen programs to Graphs; every PyTorch frontend uses these rows.

`program` is the input, `table` the loop over its calls; `methods` has the programs of a model. Each other module has
the rows of some operators; `promotion` and `rows` serve them all. The other frontends call the functions of these rows
where their operators mean the same.
"""
