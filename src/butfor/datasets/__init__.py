"""Graphs to explain predictions on: the paper's three, by seed, and a user's own, from disk."""

from .describe import describe
from .files import load_graph, load_graphs
from .npz import save_graph
from .synthetic import GENERATORS, ba_shapes, tree_cycles, tree_grid

__all__ = [
    "GENERATORS",
    "ba_shapes",
    "describe",
    "load_graph",
    "load_graphs",
    "save_graph",
    "tree_cycles",
    "tree_grid",
]
