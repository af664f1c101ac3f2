"""The numbers in the paper's tables, each row with the methods of this library that it corresponds to.

`Statistics` holds Table 1. `PaperRow` holds Table 2, with the standard deviations of the appendix, and Table 3, which
gives none. The paper's single row "CF-GNN" corresponds to two methods here, one that follows its text and one that
follows its published code; see `butfor.CFGNN`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from butfor.methods import CFGNN, KeepEgo, RandomPerturbation, RemoveEgo, RemoveSubgraph

if TYPE_CHECKING:
    from butfor.methods import Method
    from butfor.problem.method_record import MethodRecord

__all__ = [
    "INSIGNIFICANT",
    "LITERATURE",
    "PAPER",
    "LiteratureRow",
    "PaperDataset",
    "PaperRow",
    "Statistics",
    "dataset_of",
    "paper_row",
]


@dataclass(frozen=True)
class Statistics:
    """One column of Table 1, and the size of the test set.

    Attributes:
        classes: the number of classes.
        motif_nodes: the number of nodes in a motif.
        motif_edges: the number of edges in a motif, which is the size of the ground truth.
        nodes: the number of nodes in the graph.
        edges: the number of edges in the graph, counting both directions.
        degree: the mean degree.
        near_nodes: the mean number of nodes in a neighbourhood.
        near_edges: the mean number of edges in a neighbourhood, counting each once.
        test_nodes: the number of nodes in the test split of 20 %.
    """

    classes: int
    motif_nodes: int
    motif_edges: int
    nodes: int
    edges: int
    degree: float
    near_nodes: float
    near_edges: float
    test_nodes: int


@dataclass(frozen=True)
class PaperRow:
    """The results of one method on one dataset; None where the paper gives no number.

    Attributes:
        label: the paper's name for the method.
        methods: the methods of this library to compare with this row.
        fidelity: the share of test nodes without a counterfactual.
        size: the mean number of removed edges, and its standard deviation.
        sparsity: the mean share of edges that are kept, and its standard deviation.
        accuracy: the mean share of the removed edges' end nodes that are in a motif.
        found: how many test nodes have a counterfactual.
    """

    label: str
    methods: tuple[Method, ...]
    fidelity: float
    size: tuple[float, float | None]
    sparsity: tuple[float, float | None]
    accuracy: float | None
    found: int | None = None

    def value(self, metric: str) -> tuple[float | None, float | None]:
        """The mean of a metric and its standard deviation, where the paper gives them."""
        published: dict[str, tuple[float | None, float | None]] = {
            "fidelity": (self.fidelity, None),
            "size": self.size,
            "sparsity": self.sparsity,
            "accuracy": (self.accuracy, None),
        }
        return published.get(metric, (None, None))


@dataclass(frozen=True)
class PaperDataset:
    """What the paper says about one of its datasets.

    Attributes:
        name: its name in `butfor.datasets.GENERATORS`.
        title: its name in the paper.
        statistics: its column of Table 1.
        momentum: the momentum of CF-GNN; the other settings are the same for all datasets (SGD, K = 500, β = 0.5,
            α = 0.1).
        rows: the results.
        graph_id: the fingerprint of the graph that the authors published.
    """

    name: str
    title: str
    statistics: Statistics
    momentum: float
    rows: tuple[PaperRow, ...]
    graph_id: str


def _row(
    label: str,
    method: Method,
    fidelity: float,
    size: tuple[float, float],
    sparsity: tuple[float, float],
    accuracy: float | None,
    found: int,
) -> PaperRow:
    return PaperRow(label, (method,), fidelity, size, sparsity, accuracy, found)


def _gnn_explainer(
    size: int | Literal["ground-truth"], fidelity: float, mean_size: float, sparsity: float, accuracy: float
) -> PaperRow:
    label = f"GNNExp S={'GT' if size == 'ground-truth' else size}"
    return PaperRow(label, (RemoveSubgraph(size=size),), fidelity, (mean_size, None), (sparsity, None), accuracy)


def _cf_gnn(
    momentum: float,
    fidelity: float,
    size: tuple[float, float],
    sparsity: tuple[float, float],
    accuracy: float,
    found: int,
) -> PaperRow:
    methods = (CFGNN(momentum=momentum), CFGNN.published(momentum=momentum))
    return PaperRow("CF-GNN", methods, fidelity, size, sparsity, accuracy, found)


_TREE_CYCLES = PaperDataset(
    "tree-cycles",
    "Tree-Cycles",
    Statistics(2, 6, 6, 871, 1950, 2.27, 19.12, 18.99, 175),
    momentum=0.0,
    rows=(
        _row("RANDOM", RandomPerturbation(), 0.00, (4.70, 4.28), (0.79, 0.07), 0.63, 175),
        _row("1HOP", KeepEgo(), 0.32, (15.64, 12.36), (0.13, 0.06), 0.45, 119),
        _row("RM-1HOP", RemoveEgo(), 0.46, (2.11, 1.04), (0.89, 0.04), None, 94),
        _gnn_explainer(1, 0.65, 1.00, 0.92, 0.61),
        _gnn_explainer(2, 0.59, 2.00, 0.85, 0.54),
        _gnn_explainer(3, 0.56, 3.00, 0.79, 0.51),
        _gnn_explainer(4, 0.58, 4.00, 0.72, 0.48),
        _gnn_explainer(5, 0.57, 5.00, 0.66, 0.46),
        _gnn_explainer("ground-truth", 0.55, 6.00, 0.57, 0.46),
        _cf_gnn(0.0, 0.21, (2.09, 2.21), (0.90, 0.07), 0.94, 139),
    ),
    graph_id="2bcaccfdb31bb7f7",
)

_TREE_GRID = PaperDataset(
    "tree-grid",
    "Tree-Grid",
    Statistics(2, 9, 12, 1231, 3410, 2.77, 30.69, 33.94, 247),
    momentum=0.0,
    rows=(
        _row("RANDOM", RandomPerturbation(), 0.00, (9.06, 6.81), (0.75, 0.07), 0.77, 247),
        _row("1HOP", KeepEgo(), 0.32, (29.30, 16.53), (0.09, 0.04), 0.72, 168),
        _row("RM-1HOP", RemoveEgo(), 0.61, (2.27, 1.28), (0.92, 0.04), None, 97),
        _gnn_explainer(1, 0.69, 1.00, 0.96, 0.79),
        _gnn_explainer(2, 0.51, 2.00, 0.92, 0.78),
        _gnn_explainer(3, 0.46, 3.00, 0.88, 0.79),
        _gnn_explainer(4, 0.42, 4.00, 0.84, 0.79),
        _gnn_explainer(5, 0.40, 5.00, 0.80, 0.79),
        _gnn_explainer("ground-truth", 0.35, 11.83, 0.53, 0.74),
        _cf_gnn(0.0, 0.07, (1.47, 0.77), (0.94, 0.04), 0.96, 230),
    ),
    graph_id="94b5bc65bdbe735e",
)

_BA_SHAPES = PaperDataset(
    "ba-shapes",
    "BA-Shapes",
    Statistics(4, 5, 6, 700, 4100, 5.87, 304.40, 1106.24, 140),
    momentum=0.9,
    rows=(
        _row("RANDOM", RandomPerturbation(), 0.00, (503.31, 332.61), (0.58, 0.10), 0.17, 140),
        _row("1HOP", KeepEgo(), 0.60, (504.18, 567.92), (0.05, 0.05), 0.18, 56),
        _row("RM-1HOP", RemoveEgo(), 0.21, (10.56, 20.11), (0.97, 0.04), 0.99, 110),
        _gnn_explainer(1, 0.90, 1.00, 0.94, 0.52),
        _gnn_explainer(2, 0.85, 2.00, 0.91, 0.40),
        _gnn_explainer(3, 0.83, 3.00, 0.87, 0.34),
        _gnn_explainer(4, 0.83, 4.00, 0.83, 0.31),
        _gnn_explainer(5, 0.81, 5.00, 0.81, 0.27),
        _gnn_explainer("ground-truth", 0.82, 6.00, 0.79, 0.24),
        _cf_gnn(0.9, 0.39, (2.39, 1.39), (0.99, 0.01), 0.96, 85),
    ),
    graph_id="dcc48479d45c8442",
)

# By name, in the order of the paper's tables.
PAPER: dict[str, PaperDataset] = {dataset.name: dataset for dataset in (_TREE_CYCLES, _TREE_GRID, _BA_SHAPES)}


def dataset_of(name: str | None, graph_id: str) -> PaperDataset | None:
    """The paper's dataset of this name, or else the one whose published graph has this fingerprint."""
    if name in PAPER:
        return PAPER[name]
    return next((dataset for dataset in PAPER.values() if dataset.graph_id == graph_id), None)


def paper_row(dataset: PaperDataset, method: MethodRecord) -> PaperRow | None:
    """The paper's results of a method; None if the paper did not run it with these settings.

    A result of an earlier version may lack settings that did not exist then; the others must be the paper's.
    """
    for row in dataset.rows:
        for published in (one.record() for one in row.methods):
            if method == published or (method.settings and _agrees(method, published)):
                return row
    return None


def _agrees(given: MethodRecord, published: MethodRecord) -> bool:
    return given.name == published.name and given.settings.items() <= published.settings.items()


@dataclass(frozen=True)
class LiteratureRow:
    """Results that others published on the paper's datasets, for correctly classified test nodes in a motif."""

    label: str
    fidelity: float | None
    size: float


# According to the appendix, CF-GNN differs significantly from all baselines in size and sparsity, except for this one:
# its dataset and label.
INSIGNIFICANT = {("tree-grid", "rm-1hop")}

# InduCE in its transductive setting; its authors give sizes with deletions alone for the trees only.
LITERATURE: dict[str, tuple[LiteratureRow, ...]] = {
    "tree-cycles": (
        LiteratureRow("InduCE, deletions (published)", None, 2.56),
        LiteratureRow("InduCE, deletions and additions (published)", 0.00, 1.01),
    ),
    "tree-grid": (
        LiteratureRow("InduCE, deletions (published)", None, 2.49),
        LiteratureRow("InduCE, deletions and additions (published)", 0.00, 1.02),
    ),
    "ba-shapes": (LiteratureRow("InduCE, deletions and additions (published)", 0.00, 2.45),),
}
