"""What is explained in the reproduction: a graph and the paper's GCN on it, published or made by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from butfor.datasets import GENERATORS, describe, load_graph
from butfor.errors import GraphError, ModelError, StoreError
from butfor.models import load_checkpoint, load_published, save_checkpoint, trained_gcn
from butfor.models.gcn import PaperGCN
from butfor.paper.published import PAPER
from butfor.session import Explainer

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from torch_geometric.data import Data

    from butfor.paper.published import PaperDataset, PaperRow, Statistics

__all__ = ["Ready", "Subject", "open_fresh", "open_published", "published_files"]


@dataclass(frozen=True)
class Subject:
    """A graph of the paper and a model of it: by seed, or the published ones where the seed is None."""

    dataset: str
    seed: int | None = None

    @property
    def source(self) -> str:
        """Where it comes from, as its folder is called."""
        return "published" if self.seed is None else f"seed-{self.seed}"

    @property
    def paper(self) -> PaperDataset:
        """What the paper says of this dataset."""
        return PAPER[self.dataset]

    def paper_row(self, label: str) -> PaperRow | None:
        """The paper's results of the method that it calls so."""
        return next((row for row in self.paper.rows if row.label == label), None)


@dataclass(frozen=True, eq=False)
class Ready:
    """A subject in memory.

    Attributes:
        data: the graph.
        model: its model.
        classes: the predicted class of every node.
    """

    data: Data
    model: PaperGCN
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, data: Data, model: PaperGCN) -> Ready:
        """With the classes that the model predicts."""
        return cls(data, model, Explainer.of(model, data).scene.classes)

    @property
    def test_nodes(self) -> list[int]:
        """All test nodes."""
        nodes: list[int] = self.data.test_mask.nonzero().flatten().tolist()
        return nodes

    def right_in_motif(self, node: int | tuple[int, int]) -> bool:
        """Whether a node is in a motif and classified correctly; a link never is."""
        return isinstance(node, int) and int(self.data.y[node]) == int(self.classes[node]) > 0


def published_files(dataset: str, reference: Path) -> tuple[Path, Path]:
    """Where the published graph and weights of a dataset are."""
    name = dataset.replace("-", "_")
    return reference / f"{name}_graph.npz", reference / f"{name}_gcn_weights.npz"


def open_published(subject: Subject, reference: Path) -> Ready:
    """The published graph and weights.

    Raises:
        GraphError, ModelError: a file is missing, damaged, or of another dataset.
    """
    graph, weights = published_files(subject.dataset, reference)
    data, model, paper = load_graph(graph), load_published(weights), subject.paper.statistics
    if data.num_nodes != paper.nodes:
        raise GraphError(f"{graph} has {data.num_nodes} nodes; {subject.paper.title} has {paper.nodes}")
    if model.num_classes != paper.classes:
        raise ModelError(f"{weights} tell {model.num_classes} classes apart; {subject.paper.title} has {paper.classes}")
    _mark_motifs(data, paper)
    return Ready.of(data, model)


def _mark_motifs(data: Data, paper: Statistics) -> None:
    """Say which nodes and edges are a motif's: the files do not, but motifs come last and one after the other.

    A noise edge between two nodes of one motif is taken for one of its own; there is one such edge, in Tree-Grid.
    """
    first = int((data.y > 0).nonzero().min())
    of = torch.arange(data.num_nodes).sub(first).div(paper.motif_nodes, rounding_mode="floor")
    data.node_motif = of.clamp(min=-1)
    source, target = data.node_motif[data.edge_index]
    data.edge_motif = (source == target) & (source >= 0)
    data.motif_size = paper.motif_edges


def open_fresh(subject: Subject, folder: Path, progress: bool = False) -> Ready:
    """The graph of this seed and its model, which is trained unless the folder has it.

    Raises:
        ModelError: the checkpoint is damaged.
        StoreError: the checkpoint is of another graph.
    """
    assert subject.seed is not None
    data = GENERATORS[subject.dataset](subject.seed)
    about = describe(data)
    if not (folder / "model.json").exists():
        model, result = trained_gcn(data, seed=subject.seed, progress=progress)
        save_checkpoint(folder, model, data_info=about, result=result)
        return Ready.of(data, model)
    kept, info = load_checkpoint(folder)
    if not isinstance(kept, PaperGCN) or info.get("data", {}).get("sha256") != about["sha256"]:
        raise StoreError(f"{folder} holds a model of another graph: choose another folder, or delete that one")
    return Ready.of(data, kept)
