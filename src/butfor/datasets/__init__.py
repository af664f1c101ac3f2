"""Graphs to explain predictions on: the paper's three and BA-2Motifs, by seed, and others from disk."""

from butfor.datasets.describe import describe
from butfor.datasets.files import load_graph, load_graphs
from butfor.datasets.motif_graphs import ba_2motifs
from butfor.datasets.mutagenicity import load_mutagenicity
from butfor.datasets.npz import save_graph
from butfor.datasets.synthetic import GENERATORS, ba_shapes, tree_cycles, tree_grid

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
