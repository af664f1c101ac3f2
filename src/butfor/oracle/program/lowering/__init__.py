"""From recorded operations to steps on rows.

Each tensor of a trace is one of three things: *rows*, a value with a row for each node or edge along one of its axes;
an *index*, whole numbers or truth values that follow from the edges alone; or a *constant*, such as a weight. Edits
act in one place only: an edge that is gone is an entry that no reduction counts. So the index tensors are constants of
the neighbourhood, once it is known which edge each of their entries comes from, and what is left are a few kinds of
steps. An operation that mixes rows in any other way is `Untraceable`.

`walk.py` goes through the operations; its two tables say which function follows which operation, where it is done to
rows and where to indices. What is known so far is in `facts.py`. To follow another operation of torch, put its name
into the family of `operations.py` that does the same, or write a function and add a line to a table.
"""

from butfor.oracle.program.lowering.walk import Lowering

__all__ = ["Lowering"]
