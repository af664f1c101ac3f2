"""What works with what, found out by trying: the tables of docs/support.md.

    python -m benchmarks.support              # prints them, in about a minute
    python -m benchmarks.support --write      # into docs/support.md, between its markers

Every cell is a search on a small random graph with an untrained model. `✓`: it ran, and what it found was verified by
making the edits on the whole graph. `○`: the same, but the method had to search without gradients. `–`: it refuses;
the reasons are listed below the table. Models with the same row share it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch_geometric import nn as gnn
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData

import butfor
from butfor.errors import ButforError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "support.md"
BEGIN, END = "<!-- made by python -m benchmarks.support --write -->", "<!-- end -->"
IN, OUT = 4, 3

METHODS: dict[str, butfor.methods.Method] = {
    "Exact": butfor.Exact(),
    "Greedy": butfor.Greedy(width=2),
    "CFGNN": butfor.CFGNN(epochs=10),
    "PRBCD": butfor.PRBCD(epochs=5),
    "GRBCD": butfor.GRBCD(epochs=5),
    "Random": butfor.RandomPerturbation(samples=30),
    "KeepEgo": butfor.KeepEgo(),
    "RemoveEgo": butfor.RemoveEgo(),
    "RemoveSubgraph": butfor.RemoveSubgraph(size=1, epochs=2),
}

EDITS = {
    "delete edges": butfor.EditSpace(),
    "add edges": butfor.EditSpace(delete=False, add=butfor.Within(hops=2, most=8)),
    "change features": butfor.EditSpace(delete=False, features=butfor.Features(values=[-2.0, 2.0])),
    "all, with rules": butfor.EditSpace(
        add=butfor.Within(hops=2, most=6, cost=2.0),
        features=butfor.Features(values=[-2.0, 2.0], cost=1.5),
        max_edits=3,
        keep_connected=True,
    ),
}


class Stack(nn.Module):
    """Layers with ReLU between them, and perhaps a norm."""

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers, self.norm = nn.ModuleList(layers), norm

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """One layer after the other."""
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else x.relu(), edge_index)
            if self.norm is not None and number == 0:
                x = self.norm(x)
        return x


def twice(layer: Callable[[int, int], nn.Module], norm: nn.Module | None = None) -> Callable[[int], nn.Module]:
    """Two such layers."""
    return lambda out: Stack([layer(IN, 8), layer(8, out)], norm)


def mlp(inside: int, outside: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inside, outside), nn.ReLU(), nn.Linear(outside, outside))


def pna(inside: int, outside: int) -> nn.Module:
    return gnn.PNAConv(
        inside, outside, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([1, 4, 4, 2])
    )


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "GCN": lambda out: gnn.GCN(IN, 8, 2, out),
    "GraphSAGE mean": twice(gnn.SAGEConv),
    "GraphSAGE max": twice(lambda a, b: gnn.SAGEConv(a, b, aggr="max")),
    "GraphSAGE sum": twice(lambda a, b: gnn.SAGEConv(a, b, aggr="sum")),
    "GAT": twice(gnn.GATConv),
    "GATv2": twice(gnn.GATv2Conv),
    "GIN": twice(lambda a, b: gnn.GINConv(mlp(a, b))),
    "GraphConv": twice(gnn.GraphConv),
    "TransformerConv": twice(gnn.TransformerConv),
    "ChebConv": twice(lambda a, b: gnn.ChebConv(a, b, K=2)),
    "SGConv": lambda out: Stack([gnn.SGConv(IN, out, K=2)]),
    "TAGConv": lambda out: Stack([gnn.TAGConv(IN, out, K=2)]),
    "APPNP": lambda out: Stack([gnn.GCNConv(IN, out), gnn.APPNP(K=3, alpha=0.1)]),
    "ARMAConv": twice(gnn.ARMAConv),
    "PNA": twice(pna),
    "EdgeConv": twice(lambda a, b: gnn.EdgeConv(mlp(2 * a, b))),
    "jumping knowledge": lambda out: gnn.GIN(IN, 8, 2, out, jk="cat"),
    "batch norm": lambda out: gnn.GraphSAGE(IN, 8, 2, out, norm="batch_norm"),
    "PairNorm (global)": twice(gnn.GCNConv, gnn.PairNorm()),
    "GraphNorm (global)": twice(gnn.SAGEConv, gnn.GraphNorm(8)),
    "LSTM aggregation": twice(lambda a, b: SortedSAGE(a, b)),
}


class SortedSAGE(nn.Module):
    """An LSTM over the neighbours, whose order no weight can follow."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.layer = gnn.SAGEConv(inside, outside, aggr="lstm")

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Edges sorted by receiver, as PyG wants them."""
        return self.layer(x, edge_index[:, edge_index[1].argsort(stable=True)])


class Links(nn.Module):
    """Two nodes are linked if their representations point the same way."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_label_index: torch.Tensor) -> torch.Tensor:
        """One number for each pair."""
        z = self.encoder(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1) - 0.1


class Graphs(nn.Module):
    """Node representations, summed."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor | None = None) -> torch.Tensor:
        """One row for each graph."""
        return gnn.global_mean_pool(self.encoder(x, edge_index), batch)


class Typed(nn.Module):
    """One SAGE layer for each relation, twice."""

    def __init__(self, relations: list[tuple[str, str, str]], out: int) -> None:
        super().__init__()
        self.first, self.second = (
            gnn.HeteroConv({relation: gnn.SAGEConv((-1, -1), width) for relation in relations}) for width in (8, out)
        )

    def forward(self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any]) -> torch.Tensor:
        """One row for each paper."""
        hidden = {kind: value.relu() for kind, value in self.first(x_dict, edge_index_dict).items()}
        return self.second(hidden, edge_index_dict)["paper"]


def small_graph() -> Data:
    generator = torch.Generator().manual_seed(4)
    chosen = torch.triu(torch.rand(9, 9, generator=generator) < 0.3, 1).nonzero()
    chosen = torch.cat([chosen, torch.tensor([[node, node + 1] for node in range(8)])]).unique(dim=0)
    return Data(
        x=torch.randn(9, IN, generator=generator), edge_index=torch.cat([chosen, chosen.flip(1)]).T.contiguous()
    )


def typed_graph() -> HeteroData:
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["author"].x, data["paper"].x = (torch.randn(5, width, generator=generator) for width in (3, 4))
    data["author", "writes", "paper"].edge_index = torch.randint(5, (2, 9), generator=generator)
    data["paper", "cites", "paper"].edge_index = torch.randint(5, (2, 5), generator=generator)
    return transforms.ToUndirected()(data)


def tasks() -> dict[str, tuple[dict[str, Callable[[], nn.Module]], Any, Any, dict[str, Any]]]:
    """For each task: models, graph, target and settings."""
    data, typed = small_graph(), typed_graph()
    few = {name: MODELS[name] for name in ("GCN", "GraphSAGE mean", "GAT", "GIN", "PNA")}
    yes = {"goal": butfor.Goal(threshold=0.0)}
    every = {name: (lambda make=make: make(OUT)) for name, make in MODELS.items()}
    return {
        "node class": (every, data, 3, {}),
        "node value": ({name: (lambda make=make: make(1)) for name, make in few.items()}, data, 3, yes),
        "link": (
            {name: (lambda make=make: Links(make(4))) for name, make in few.items()},
            data,
            butfor.Pair(2, 6),
            yes,
        ),
        "graph class": ({name: (lambda make=make: Graphs(make(OUT))) for name, make in few.items()}, data, None, {}),
        "typed node class": (
            {"HeteroConv": lambda: Typed(typed.edge_types, OUT)},
            typed,
            1,
            {"node_type": "paper"},
        ),
    }


def cell(
    model: nn.Module, data: Any, target: Any, method: butfor.methods.Method, more: dict[str, Any]
) -> tuple[str, str]:
    """The sign of one combination, and the reason where it is refused."""
    try:
        result = butfor.explain(model, data, target, method, budget=butfor.Budget(300), **more)
    except ButforError as problem:
        return "–", str(problem).split(";")[0].split(":")[0]
    if not result.evaluations and not result.found:
        return "–", "KeepEgo, RemoveEgo and RemoveSubgraph only delete edges"
    return ("○" if "no gradients" in result.note else "✓"), ""


def tables() -> str:
    """All tables as Markdown."""
    lines: list[str] = []
    reasons: list[str] = []
    lines += [f"| task | edits | model | {' | '.join(METHODS)} |", f"|---|---|---|{'---|' * len(METHODS)}"]
    for task, (models, data, target, settings) in tasks().items():
        for edits, space in EDITS.items():
            rows: dict[tuple[str, ...], list[str]] = {}
            for name, make in models.items():
                torch.manual_seed(0)
                model = make().eval()
                signs = []
                for method in METHODS.values():
                    sign, reason = cell(model, data, target, method, {**settings, "space": space})
                    signs.append(sign)
                    if reason and reason not in reasons:
                        reasons.append(reason)
                rows.setdefault(tuple(signs), []).append(name)
            for signs, names in rows.items():
                others = [name for name in models if name not in names]
                named = "all" if not others else f"all but {', '.join(others)}" if len(others) < 4 else ", ".join(names)
                named = names[0] if len(models) == 1 else named
                lines.append(f"| {task} | {edits} | {named} | {' | '.join(signs)} |")
    lines += ["", "Why `–`:", "", *(f"- {reason}." for reason in reasons)]
    lines += [
        "",
        f"*All* models of a node's class: {', '.join(MODELS)}. Of the other tasks: GCN, GraphSAGE, GAT, GIN, PNA.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into docs/support.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    made = tables()
    print(made)
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
