"""Graphs to explain predictions on: the paper's three and BA-2Motifs, by seed, and others from disk."""

from .describe import describe
from .files import load_graph, load_graphs
from .motif_graphs import ba_2motifs
from .mutagenicity import load_mutagenicity
from .npz import save_graph
from .synthetic import GENERATORS, ba_shapes, tree_cycles, tree_grid

__all__ = [
    "GENERATORS",
    "ba_2motifs",
    "ba_shapes",
    "describe",
    "load_graph",
    "load_graphs",
    "load_mutagenicity",
    "save_graph",
    "tree_cycles",
    "tree_grid",
]
