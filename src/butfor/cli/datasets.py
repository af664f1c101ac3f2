"""``butfor datasets``: the paper's graphs, and a description of any other graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from butfor.cli.output import print_table, say
from butfor.cli.source import GRAPH_HELP, NODE_TABLE_HELP, GraphOptions, Seed, read_graphs
from butfor.datasets.registry import registry
from butfor.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

__all__ = ["datasets"]

# A line lists at most this many classes and counts the rest.
MOST_CLASSES = 50


def datasets(
    graph: Annotated[str | None, Parameter(help=GRAPH_HELP)] = None,
    /,
    *,
    seed: Seed | None = None,
    out: Path | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    node_table: Annotated[Path | None, Parameter(alias="--nodes", help=NODE_TABLE_HELP)] = None,
    undirected: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Without a graph, show the paper's graphs with their statistics, and all datasets that have a name.

    Args:
        graph: `GRAPH_HELP` describes it.
        seed: the seed of a generated graph; 0 by default.
        out: write the graph to this file (.npz).
        force: replace the file if it exists.
        node_table: `NODE_TABLE_HELP` describes it.
        undirected: add the directions that are missing in a file that lists every edge once.
    """
    if graph is None:
        if out is not None:
            single = ", ".join(name for name, dataset in registry.datasets.items() if not dataset.several)
            raise InputError(f"which graph is to be written to {out}? One of {single}, or a file")
        _print_paper_graphs(seed or 0)
        _print_names()
        return
    from butfor.datasets import save_graph

    graphs, info = read_graphs(graph, GraphOptions(seed, node_table, False if undirected else None))
    if len(graphs) > 1:
        if out is not None:
            raise InputError(f"{graph} holds {len(graphs)} graphs, and {out.suffix or 'a file'} takes one")
        _print_several(graph, graphs, str(info["sha256"]))
        return
    data = graphs[0]
    if out is None:
        _print_one(graph, data, str(info["sha256"]))
        return
    if out.exists() and not force:
        raise InputError(f"{out} exists already; choose another file, or replace it with --force")
    save_graph(data, out)
    say(f"{graph}: {data.num_nodes} nodes and {data.num_edges} edges (both directions) are written to {out}")


def _print_paper_graphs(seed: int) -> None:
    import numpy as np

    from butfor.datasets import GENERATORS
    from butfor.graph.graph import Graph
    from butfor.paper import PAPER

    rows = []
    for name, paper in PAPER.items():
        data = GENERATORS[name](seed)
        graph = Graph.of(data)
        near = [graph.neighbourhood(node, 4) for node in range(graph.num_nodes)]
        ours = [
            str(int(data.y.max()) + 1),
            f"{int((data.node_motif == 0).sum())}, {data.motif_size}",
            str(data.num_nodes),
            str(data.num_edges),
            f"{np.mean([part.num_nodes for part in near]):.2f}",
            f"{np.mean([part.num_columns / 2 for part in near]):.2f}",
            str(int(data.test_mask.sum())),
        ]
        published = paper.statistics
        theirs = [
            str(published.classes),
            f"{published.motif_nodes}, {published.motif_edges}",
            str(published.nodes),
            str(published.edges),
            f"{published.near_nodes:.2f}",
            f"{published.near_edges:.2f}",
            str(published.test_nodes),
        ]
        rows += [[name, *ours], ["  in the paper", *theirs]]
    print_table(
        ["graph", "classes", "motif", "nodes", "edges", "near nodes", "near edges", "test"],
        rows,
        title=f"Generated graphs, seed {seed}",
    )
    say()
    say("motif: nodes and edges of one motif. edges: both directions counted.")
    say("near: nodes and edges within 4 hops of a node, on average, each edge counted once.")


def _print_names() -> None:
    rows = [
        [dataset.name, "several" if dataset.several else "one", dataset.description]
        for dataset in registry.datasets.values()
    ]
    say()
    print_table(["name", "graphs", "what it is"], rows, title="Datasets that have a name", left=3)


def _print_one(name: str, data: "Data", sha256: str) -> None:
    from butfor.graph.graph import Graph

    graph = Graph.of(data)
    loops, isolated = _loops_and_isolated(data)
    rows = [
        ["nodes", str(data.num_nodes)],
        ["edges", f"{data.num_edges} columns, {'directed' if graph.directed else 'undirected'}"],
        ["self-loops", str(loops)],
        ["isolated nodes", str(isolated)],
        ["features", str(data.x.size(1))],
        ["classes", _classes(data)],
    ]
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        if key.endswith("_mask"):
            rows.append([key, f"{int(data[key].sum())} nodes"])
    rows.append(["fingerprint", sha256])
    print_table(["", ""], rows, title=name, left=2)


def _loops_and_isolated(data: "Data") -> tuple[int, int]:
    """How many edges are self-loops, and how many nodes have no edge; in parts, as the edges may be on disk."""
    import torch

    loops, alone = 0, torch.ones(int(data.num_nodes), dtype=torch.bool)
    for source, target in zip(*(row.split(2**20) for row in data.edge_index.long()), strict=True):
        loops += int((source == target).sum())
        alone[source] = alone[target] = False
    return loops, int(alone.sum())


def _classes(data: "Data") -> str:
    if data.y is None:
        return "no labels"
    if data.y.is_floating_point():
        return "numbers, not classes"
    return _counted(data.y.flatten(), data)


def _counted(labels: "Tensor", data: "Data") -> str:
    import numpy as np

    found, counts = np.unique(labels.cpu().numpy(), return_counts=True)
    names = dict(enumerate(data.class_names)) if "class_names" in data else {}
    counted = zip(found.tolist(), counts.tolist(), strict=True)
    shown = [f"{names.get(label, label)}: {count}" for label, count in counted]
    rest = [f"and {len(shown) - MOST_CLASSES} more"] if len(shown) > MOST_CLASSES else []
    return ", ".join([*shown[:MOST_CLASSES], *rest])


def _print_several(name: str, graphs: "list[Data]", sha256: str) -> None:
    import numpy as np

    rows = [
        ["graphs", str(len(graphs))],
        ["nodes", f"{np.mean([data.num_nodes for data in graphs]):.2f} on average"],
        ["edges", f"{np.mean([data.num_edges for data in graphs]):.2f} columns on average"],
        ["features", str(graphs[0].x.size(1))],
        ["classes", _classes_of(graphs)],
        ["ground truth", f"{sum(bool(data.edge_motif.any()) for data in graphs if 'edge_motif' in data)} graphs"],
        ["fingerprint", sha256],
    ]
    print_table(["", ""], rows, title=name, left=2)


def _classes_of(graphs: "list[Data]") -> str:
    import torch

    first = graphs[0]
    if any(data.y is None or data.y.numel() != 1 or data.y.is_floating_point() for data in graphs):
        return "no classes of graphs"
    return _counted(torch.cat([data.y.flatten() for data in graphs]), first)
