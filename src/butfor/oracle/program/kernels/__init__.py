"""Compiled reading of a program: values, what edits change, and gradients.

`flat.py` has the arrays of a program and of its state, and `functions.py` the functions of single numbers. `values.py`
computes steps in full; `changes.py` computes what an edit changes, and `receivers.py` the part of it where edges lead.
`soft.py` reads the same program with soft edges, and `gradients.py` reads it backwards.
"""
