"""Graphs, models and molecules as users of the command line have them on disk, small enough to be quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

# The fixture that runs a command which must fail with this message.
Refused = Callable[[list[str], str], None]

# How many nodes the graph of two rings has, and the graph that links are predicted in.
RING_NODES, LINK_NODES = 24, 12

# A link predictor, a classifier of nodes and one that returns a single number, as a user's own module has them.
MODELS = """
import torch
from torch import nn
from torch_geometric.nn import GCNConv

class Links(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = GCNConv(3, 8)
    def encode(self, x, edge_index):
        return self.conv(x, edge_index)
    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)
    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)

class Nodes(nn.Module):
    def __init__(self, outputs=2):
        super().__init__()
        torch.manual_seed(outputs)
        self.conv = GCNConv(3, outputs)
    def forward(self, x, edge_index):
        return self.conv(x, edge_index)

def number():
    return Nodes(1)
"""


def explain(folder: Path, *more: str) -> list[str]:
    """The command that explains with the checkpoint of this folder."""
    return ["explain", "--checkpoint", str(folder / "run"), *more]


def two_rings(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """Two rings joined by an edge, as the arrays of an .npz file."""
    half = RING_NODES // 2
    pairs = [(i + start, (i + 1) % half + start) for start in (0, half) for i in range(half)] + [(0, half)]
    rng = np.random.default_rng(0)
    arrays = {
        "edge_index": np.array(pairs + [(v, u) for u, v in pairs]).T,
        "x": rng.random((RING_NODES, 3)).astype(np.float32),
        "y": (np.arange(RING_NODES) >= half).astype(np.int64),
        "train_idx": np.arange(0, RING_NODES, 2),
        "test_idx": np.arange(1, RING_NODES, 2),
    }
    return arrays | changes


def one_ring() -> dict[str, np.ndarray]:
    """A ring whose features are 0 or 1, as the arrays of an .npz file."""
    ring = np.array([(i, (i + 1) % LINK_NODES) for i in range(LINK_NODES)])
    x = (np.random.default_rng(1).random((LINK_NODES, 3)) < 0.5).astype(np.float32)
    return {"edge_index": np.concatenate([ring, ring[:, ::-1]]).T, "x": x, "y": np.arange(LINK_NODES) % 2}


def write_molecules(folder: Path, count: int = 40, prefix: str = "Mutagenicity", length: int = 4) -> Path:
    """Chains of carbon in the format of Mutagenicity: in every other one N and twice O are a nitro group."""
    folder.mkdir()
    rows: dict[str, list[object]] = {part: [] for part in ("A", "graph_indicator", "node_labels", "edge_labels")}
    rows |= {"graph_labels": [], "edge_gt": []}
    first = 1
    for number in range(count):
        chain = length + number % 3
        atoms = [0] * chain + [4, 1, 1] + (list(range(14)) if number == 0 else [])
        bonds = [(i, i + 1, i % 3, 0) for i in range(chain - 1)] + [(0, chain, 0, 0)]
        nitro = number % 2 == 0
        bonds += [(chain if nitro else oxygen, chain + oxygen, 0, int(nitro)) for oxygen in (1, 2)]
        for u, v, kind, truth in bonds:
            for a, b in ((u, v), (v, u)):
                rows["A"].append(f"{a + first}, {b + first}")
                rows["edge_labels"].append(kind)
                rows["edge_gt"].append(truth)
        rows["node_labels"] += atoms
        rows["graph_indicator"] += [number + 1] * len(atoms)
        rows["graph_labels"].append(number % 2)
        first += len(atoms)
    for part, lines in rows.items():
        (folder / f"{prefix}_{part}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder
