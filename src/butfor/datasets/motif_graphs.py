"""The generator of BA-2Motifs: many small graphs, each with a motif that decides its class.

From "Parameterized Explainer for Graph Neural Network" (PGExplainer, NeurIPS 2020). What the paper leaves
open is chosen so that the counts agree with its published file (1000 graphs of 25 nodes, with 51 edges on
average, both directions counted): a Barabási-Albert tree of 20 nodes, the motif, and one edge between
a random node of each. Motif nodes are the last five, as in that file.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from butfor.datasets.synthetic import HOUSE, Motif, barabasi_albert
from butfor.errors import InputError

__all__ = ["ba_2motifs"]

_BASE_NODES = 20
_FEATURES = 10
_CYCLE = Motif((1,) * 5, tuple((i, (i + 1) % 5) for i in range(5)))
_MOTIFS = {"cycle": _CYCLE, "house": HOUSE}  # in the order of the classes


def ba_2motifs(graphs: int = 1000, seed: int = 0) -> list[Data]:
    """Return BA-2Motifs: graphs with, in turn, a five-node cycle (class 0) and a house (class 1) attached.

    All ten features of every node are 0.1, so that only the edges tell the classes apart. Besides
    `x`, `edge_index` and `y` (shape [1]) each graph carries its ground truth: `node_motif` (0 for a node of
    the motif, -1 for the base), `edge_motif` (whether this is one of the motif's own edges), `motif_size` (edges in
    the motif) and `class_names`. With the same seed, the first graphs are the same however many there are.

    Args:
        graphs: how many.
        seed: of the trees and of where the motifs are attached.

    Raises:
        InputError: if `graphs` is less than 1.

    Examples:
        >>> import butfor
        >>> graphs = butfor.datasets.ba_2motifs(graphs=4)
        >>> [graph.class_names[int(graph.y)] for graph in graphs]
        ['cycle', 'house', 'cycle', 'house']
    """
    if graphs < 1:
        raise InputError(f"graphs is {graphs}, but a dataset needs at least 1")
    rng = np.random.default_rng(seed)
    return [_graph(number % len(_MOTIFS), seed, rng) for number in range(graphs)]


def _graph(label: int, seed: int, rng: np.random.Generator) -> Data:
    motif = list(_MOTIFS.values())[label]
    size = len(motif.roles)
    base = barabasi_albert(_BASE_NODES, 1, rng)
    inside = _BASE_NODES + np.array(motif.edges)
    hook = np.array([[rng.integers(_BASE_NODES), _BASE_NODES + rng.integers(size)]])
    pairs = np.concatenate([base, inside, hook])
    is_motif = np.repeat([False, True, False], [len(base), len(inside), 1])

    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    return Data(
        x=torch.full((_BASE_NODES + size, _FEATURES), 0.1),
        edge_index=torch.from_numpy(np.ascontiguousarray(both[order].T)),
        y=torch.tensor([label]),
        node_motif=torch.from_numpy(np.repeat([-1, 0], [_BASE_NODES, size])),
        edge_motif=torch.from_numpy(np.tile(is_motif, 2)[order]),
        motif_size=len(motif.edges),
        class_names=list(_MOTIFS),
        name="ba-2motifs",
        seed=seed,
    )
