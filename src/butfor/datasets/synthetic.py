"""Generators of the paper's three graphs: a base graph, motifs attached to it, and a few noise edges.

What the paper leaves open is chosen as in its published graphs:

- **Where motifs are attached.** To every k-th base node (k = base nodes // motifs), by the motif's first node:
  any node of a cycle, a corner of a grid, a *middle* node of a house. In a Barabási-Albert base the early
  nodes are the hubs, so this choice (and not a random one) gives the published 4-hop neighbourhoods.
- **How many noise edges there are.** As many as make the totals of Table 1 exact (1950, 3410 and 4100, both
  directions counted): 45, 155 and 15 pairs, drawn uniformly among the pairs that are not yet joined.
- **Split.** One fifth of the nodes, rounded up, is the test set; all others are for training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

__all__ = ["HOUSE", "Motif", "ba_shapes", "barabasi_albert", "tree_cycles", "tree_grid"]

Pairs = npt.NDArray[np.int64]  # [pairs, 2], each undirected edge once

_FEATURES = 10
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Motif:
    """A small graph that is attached to a base graph."""

    roles: tuple[int, ...]  # the class of each of its nodes; the first node is joined to the base
    edges: tuple[tuple[int, int], ...]


_CYCLE = Motif((1,) * 6, tuple((i, (i + 1) % 6) for i in range(6)))
_GRID = Motif(
    (1,) * 9,
    tuple((3 * row + col, 3 * row + col + 1) for row in range(3) for col in range(2))
    + tuple((3 * row + col, 3 * row + col + 3) for row in range(2) for col in range(3)),
)
# The two middle nodes carry the top node, the roof; the two bottom nodes are below them.
HOUSE = Motif((1, 1, 2, 2, 3), ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)))


def tree_cycles(seed: int = 0) -> Data:
    """Return Tree-Cycles: a binary tree of 511 nodes with 60 six-cycles; 871 nodes, 1950 edges.

    The classes are 0 base and 1 motif. Besides `x`, `edge_index`, `y`, `train_mask` and `test_mask` the
    graph carries its ground truth: `node_motif` (the motif that a node belongs to, -1 for the base), `edge_motif`
    (whether this is one of a motif's own edges), `motif_size` (edges in one motif) and `class_names`.

    Args:
        seed: of the noise edges and the split into training and test nodes.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> data.num_nodes, data.num_edges, data.class_names
        (871, 1950, ['base', 'motif'])
        >>> int(data.test_mask.sum()), int(data.edge_motif.sum())
        (175, 720)
    """
    rng = np.random.default_rng(seed)
    return _assemble("tree-cycles", seed, rng, _binary_tree(8), _CYCLE, 60, 45, ["base", "motif"])


def tree_grid(seed: int = 0) -> Data:
    """Return Tree-Grid: a binary tree of 511 nodes with 80 grids of 3×3; 1231 nodes, 3410 edges.

    The classes are 0 base and 1 motif; for the attributes see `tree_cycles`.

    Args:
        seed: of the noise edges and the split into training and test nodes.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.tree_grid(seed=0)
        >>> data.num_nodes, data.num_edges, data.class_names
        (1231, 3410, ['base', 'motif'])
    """
    rng = np.random.default_rng(seed)
    return _assemble("tree-grid", seed, rng, _binary_tree(8), _GRID, 80, 155, ["base", "motif"])


def ba_shapes(seed: int = 0) -> Data:
    """Return BA-Shapes: a Barabási-Albert graph of 300 nodes with 80 houses; 700 nodes, 4100 edges.

    The classes are 0 base, 1 middle, 2 bottom and 3 top of a house; for the attributes see `tree_cycles`.

    Args:
        seed: of the base graph, the noise edges and the split into training and test nodes.

    Examples:
        >>> import butfor
        >>> data = butfor.datasets.ba_shapes(seed=0)
        >>> data.num_nodes, data.num_edges, data.class_names
        (700, 4100, ['base', 'middle', 'bottom', 'top'])
    """
    rng = np.random.default_rng(seed)
    base = barabasi_albert(300, 5, rng)
    return _assemble("ba-shapes", seed, rng, base, HOUSE, 80, 15, ["base", "middle", "bottom", "top"])


def _binary_tree(height: int) -> Pairs:
    children = np.arange(1, 2 ** (height + 1) - 1)
    return np.stack([(children - 1) // 2, children], axis=1)


def barabasi_albert(nodes: int, m: int, rng: np.random.Generator) -> Pairs:
    """Grow a graph from a star of m + 1 nodes; each new node joins m others, chosen by their degree."""
    pairs = [(0, leaf) for leaf in range(1, m + 1)]
    # Each node is in this list once per edge that it has, so a uniform draw is a draw by degree.
    stubs = [node for pair in pairs for node in pair]
    for new in range(m + 1, nodes):
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.add(stubs[int(rng.integers(len(stubs)))])
        for old in sorted(chosen):
            pairs.append((old, new))
            stubs += (old, new)
    return np.array(pairs, dtype=np.int64)


def _noise(pairs: Pairs, nodes: int, count: int, rng: np.random.Generator) -> Pairs:
    taken = {(min(u, v), max(u, v)) for u, v in pairs.tolist()}
    drawn: list[tuple[int, int]] = []
    while len(drawn) < count:
        u, v = sorted(rng.integers(nodes, size=2).tolist())
        if u != v and (u, v) not in taken:
            taken.add((u, v))
            drawn.append((u, v))
    return np.array(drawn, dtype=np.int64).reshape(-1, 2)


def _assemble(
    name: str,
    seed: int,
    rng: np.random.Generator,
    base: Pairs,
    motif: Motif,
    motifs: int,
    noise: int,
    class_names: list[str],
) -> Data:
    base_nodes = int(base.max()) + 1
    size = len(motif.roles)
    firsts = base_nodes + size * np.arange(motifs)
    inside = (firsts[:, None, None] + np.array(motif.edges)).reshape(-1, 2)
    hooks = np.stack([np.arange(motifs) * (base_nodes // motifs), firsts], axis=1)
    nodes = base_nodes + size * motifs
    built = np.concatenate([base, inside, hooks])
    pairs = np.concatenate([built, _noise(built, nodes, noise, rng)])
    is_motif = np.zeros(len(pairs), dtype=bool)
    is_motif[len(base) : len(base) + len(inside)] = True

    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    test = np.zeros(nodes, dtype=bool)
    test[rng.permutation(nodes)[: int(np.ceil(_TEST_SHARE * nodes))]] = True
    no_motif = np.full(base_nodes, -1)
    return Data(
        x=torch.ones(nodes, _FEATURES),
        edge_index=torch.from_numpy(np.ascontiguousarray(both[order].T)),
        y=torch.from_numpy(np.concatenate([np.zeros(base_nodes, np.int64), np.tile(motif.roles, motifs)])),
        train_mask=torch.from_numpy(~test),
        test_mask=torch.from_numpy(test),
        node_motif=torch.from_numpy(np.concatenate([no_motif, np.repeat(np.arange(motifs), size)])),
        edge_motif=torch.from_numpy(np.tile(is_motif, 2)[order]),
        motif_size=len(motif.edges),
        class_names=class_names,
        name=name,
        seed=seed,
    )
