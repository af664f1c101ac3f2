"""How edges are named: by a user, and by a key that does not depend on how they were written."""

from __future__ import annotations

__all__ = ["Edge", "EdgeKey", "Relation", "TargetType"]

# The type of an edge in a graph of several node types: source type, name, target type.
Relation = tuple[str, str, str]

# An edge as a user writes it: two nodes, in a graph of several node types with its relation.
Edge = tuple[int, int] | tuple[Relation, int, int]

# The type of a target in a graph of several node types: that of a node, or those of the two ends of a link.
TargetType = str | tuple[str, str]

# The number of its relation (0 where there is one type) and two node ids.
EdgeKey = tuple[int, int, int]
