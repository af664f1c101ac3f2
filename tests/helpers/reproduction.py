"""`butfor reproduce` run as a user runs it, its folder read, and its numbers recomputed.

The GCN, the neighbourhood and the metrics are this file's own and share no code with the library.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch_geometric
from scipy import sparse

import butfor
from butfor.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    Capture = pytest.CaptureFixture[str]

Row = dict[str, str]

# What a quick run is called with, and the four parts of the run that most tests look at.
QUICK = ("--quick", "--datasets", "tree-cycles", "--jobs", "1")
PARTS = ("table-1", "table-2", "figures", "significance")
METHODS = ["random", "1hop", "rm-1hop", "cf-gnn", "cf-gnn-paper", "greedy", "exact"]
NAMES = ["RANDOM", "1HOP", "RM-1HOP", "CF-GNN", "CF-GNN, as written", "Greedy", "Exact"]
VERSIONS = {
    "butfor": butfor.__version__,
    "python": sys.version.split()[0],
    "torch": torch.__version__,
    "torch_geometric": torch_geometric.__version__,
}


@dataclass(frozen=True)
class Done:
    """A run that ended well: its folder, and what it said."""

    folder: Path
    out: str


def reproduce(folder: Path, *arguments: str) -> Done:
    """Run the command in this folder."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["reproduce", *arguments, "--out", str(folder)])
    assert code == 0, err.getvalue()
    return Done(folder, out.getvalue())


def refusal(capsys: Capture, *arguments: str) -> str:
    """The line that says what is wrong."""
    capsys.readouterr()
    code = main(["reproduce", *arguments])
    err = capsys.readouterr().err
    assert code == 2, err
    assert "Traceback" not in err
    (message,) = [line for line in err.splitlines() if line.startswith("error: ")]
    return message


def table(folder: Path, name: str) -> list[Row]:
    """The rows of a CSV file, without means over seeds and what others published."""
    with (folder / "tables" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row.get("source") not in ("all seeds", "literature")]


def number(cell: str) -> float | None:
    """The number in a cell of a CSV file; None where it is empty."""
    return float(cell) if cell else None


def markdown(folder: Path, name: str) -> tuple[str, list[list[str]]]:
    """The title of a table and its cells, headings first."""
    text = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert set("".join(rows[1])) <= set("-: ")
    assert len({len(row) for row in rows}) == 1
    return text.splitlines()[0].strip("*"), [rows[0], *rows[2:]]


def lines(path: Path) -> list[dict]:
    """The results in a file, as plain data."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def results(folder: Path, source: str, method: str) -> list[dict]:
    """The results of a method on Tree-Cycles, as plain data."""
    return lines(folder / "results" / source / "tree-cycles" / f"{method}.jsonl")


def result_files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file of results and each model was last written, and what it holds."""
    paths = [path for kind in ("results", "models") for path in (folder / kind).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def tables(folder: Path) -> dict[str, bytes]:
    """What the files of tables hold, by their names."""
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


def page_of(folder: Path) -> Page:
    """The page of a run."""
    return Page((folder / "index.html").read_text(encoding="utf-8"))


class Page(HTMLParser):
    """What is on a page; closing anything but the innermost open element is an error.

    Attributes:
        elements: each element and its attributes.
        words: each piece of text, with the elements around it.
        tables: the text of the caption and of the cells of each table.
    """

    VOID = frozenset({"br", "hr", "img", "link", "meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[tuple[str, ...], str]] = []
        self.tables: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag in ("td", "th", "caption"):
            self.tables[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append((tuple(self.open), data))
        if {"td", "th", "caption"} & set(self.open):
            self.tables[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element of this kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *within: str) -> str:
        """The words inside of these elements."""
        return "".join(words for path, words in self.words if set(within) <= set(path) and "style" not in path)

    @property
    def ids(self) -> list[str]:
        """All names that a link can lead to."""
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]

    @property
    def links(self) -> list[str]:
        """Where a reader can go."""
        return [link["href"] or "" for link in self.all("a")]

    @property
    def sources(self) -> list[str]:
        """What a browser loads to show the page."""
        names = ("src", "srcset", "poster", "data")
        loaded = [(tag, name, value) for tag, attributes in self.elements for name, value in attributes.items()]
        return [value or "" for tag, name, value in loaded if name in names or (name == "href" and tag != "a")]


# The paper's model and metrics, once more.


def classes(x: np.ndarray, edge_index: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """Three GCN layers, concatenated, and one linear layer: the predicted class of every node."""
    adjacency = sparse.coo_array((np.ones(edge_index.shape[1]), edge_index), (len(x), len(x))).tocsr()
    adjacency = adjacency + sparse.eye_array(len(x), format="csr")
    scale = sparse.diags_array(adjacency.sum(1) ** -0.5)
    adjacency = scale @ adjacency @ scale
    hidden, layers = x.astype(float), []
    for layer in ("gc1", "gc2", "gc3"):
        hidden = adjacency @ hidden @ weights[f"{layer}.weight"] + weights[f"{layer}.bias"]
        hidden = hidden if layer == "gc3" else np.maximum(hidden, 0)
        layers.append(hidden)
    return (np.concatenate(layers, 1) @ weights["lin.weight"].T + weights["lin.bias"]).argmax(1)


def without(edge_index: np.ndarray, removed: set[tuple[int, int]]) -> np.ndarray:
    """The edges that are left."""
    stays = [(u, v) not in removed and (v, u) not in removed for u, v in edge_index.T.tolist()]
    return edge_index[:, stays]


@dataclass(frozen=True)
class Published:
    """The published Tree-Cycles or a variant of it, its weights and what they predict."""

    x: np.ndarray
    y: np.ndarray
    edge_index: np.ndarray
    test: list[int]
    weights: dict[str, np.ndarray]
    predicted: np.ndarray

    @classmethod
    def of(cls, folder: Path) -> Published:
        """From the files in a reference folder."""
        graph = dict(np.load(folder / "tree_cycles_graph.npz"))
        weights = dict(np.load(folder / "tree_cycles_gcn_weights.npz"))
        predicted = classes(graph["x"], graph["edge_index"], weights)
        return cls(graph["x"], graph["y"], graph["edge_index"], graph["test_idx"].tolist(), weights, predicted)

    @cached_property
    def neighbours(self) -> dict[int, set[int]]:
        neighbours: dict[int, set[int]] = {node: set() for node in range(len(self.x))}
        for u, v in self.edge_index.T.tolist():
            neighbours[u].add(v)
        return neighbours

    def edges_near(self, node: int) -> int:
        """How many edges its neighbourhood of four hops has."""
        near = {node}
        for _ in range(4):
            near = near.union(*(self.neighbours[u] for u in near))
        return sum(len(self.neighbours[u] & near) for u in near) // 2


@dataclass(frozen=True)
class Node:
    """One result, as the metrics see it."""

    target: int
    removed: tuple[tuple[int, int], ...]
    edges: int

    @property
    def size(self) -> int:
        return len(self.removed)

    @property
    def sparsity(self) -> float:
        return 1 - self.size / self.edges

    def accuracy(self, motif: np.ndarray) -> float | None:
        ends = {end for edge in self.removed for end in edge} - {self.target}
        return sum(bool(motif[end]) for end in ends) / len(ends) if ends else None


def nodes_of(folder: Path, method: str, published: Published) -> list[Node]:
    """The results of a method, with neighbourhoods counted here."""
    return [
        Node(line["target"], tuple((u, v) for _, u, v in line["edits"]), published.edges_near(line["target"]))
        for line in results(folder, "published", method)
    ]


def as_close(ours: float | None, theirs: float | None) -> bool:
    """Whether both are missing, or the same but for rounding."""
    return ours is theirs is None or (ours is not None and theirs is not None and math.isclose(ours, theirs))


def metrics(nodes: list[Node], predicted: np.ndarray) -> dict[str, float | None]:
    """The paper's metrics of these results."""
    found = [node for node in nodes if node.removed]
    sizes = np.array([node.size for node in found])
    sparsities = np.array([node.sparsity for node in found])
    in_motif = [node.accuracy(predicted != 0) for node in found if predicted[node.target] != 0]
    accuracies = [share for share in in_motif if share is not None]
    return {
        "found": len(found),
        "total": len(nodes),
        "fidelity": 1 - len(found) / len(nodes),
        "size": sizes.mean() if found else None,
        "size_std": sizes.std() if found else None,
        "sparsity": sparsities.mean() if found else None,
        "sparsity_std": sparsities.std() if found else None,
        "accuracy": float(np.mean(accuracies)) if accuracies else None,
    }
