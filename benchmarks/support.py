"""What works with what, found out by trying: the tables of docs/results/support.md.

    python -m benchmarks.support              # prints them, in a few minutes
    python -m benchmarks.support --write      # also writes them into docs/results/support.md, between its markers

For every cell, one method explains an untrained model on small random graphs. It tries one target after another, the
least certain predictions first, until it finds a counterfactual. `SIGNS` says what is printed. Every counterfactual was
verified by making its edits on the whole graph. Models with equal rows share one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch_geometric import nn as gnn
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData

import butfor
from butfor.errors import ButforError
from butfor.methods import METHODS as REGISTERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butfor.methods import Method

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "support.md"
BEGIN, END = "<!-- made by python -m benchmarks.support --write -->", "<!-- end -->"
IN, OUT = 4, 3
NODES, GRAPHS, TRIES = 9, 4, 12

FOUND, WITHOUT_GRADIENTS, NOTHING, REFUSED = "✓", "○", "∅", "–"
SIGNS = {
    FOUND: "found, and verified on the whole graph",
    WITHOUT_GRADIENTS: "the same, but the method had to search without gradients, and the result's `note` says so",
    NOTHING: f"it ran, and found nothing for any of {TRIES} targets",
    REFUSED: "refused with an error",
}
NOTHING_FOUND = {
    "nothing to ask": "they only delete edges, so with other edits they have nothing to ask the model about",
    "asked": (
        "what they asked about did not change the answer, or broke a rule. KeepEgo and RemoveEgo ask about one set of "
        "edges each, which may be more than the rules allow, and RemoveEgo's always cuts its target off"
    ),
}

# Settings that are quick and suit untrained models; all other methods have their defaults.
QUICK: dict[str, Method] = {
    "greedy": butfor.Greedy(width=2),
    # Untrained models have small gradients; with this clip and learning rate, steps nevertheless have length 1.
    "cf-gnn": butfor.CFGNN(epochs=40, lr=100.0, beta=0.0, clip=0.01),
    "prbcd": butfor.PRBCD(epochs=5),
    "grbcd": butfor.GRBCD(epochs=5),
    "random": butfor.RandomPerturbation(samples=300),
    "remove-subgraph": butfor.RemoveSubgraph(size=1, epochs=10),
}
# `Exact` begins with `Descent`, so its column shows what that takes.
METHODS = {method.__name__: QUICK.get(name) or method() for name, method in REGISTERED.items() if name != "descent"}

EDITS = {
    "delete edges": butfor.EditSpace(),
    "add edges": butfor.EditSpace(delete=False, add=butfor.Within(hops=2, most=8)),
    "change features": butfor.EditSpace(delete=False, features=butfor.Features(values=[-2.0, 2.0])),
    "all, with rules": butfor.EditSpace(
        add=butfor.Within(hops=2, most=2, cost=2.0),
        features=butfor.Features(values=[-2.0, 2.0], columns=[0], cost=1.5),
        max_edits=5,
        keep_connected=True,
    ),
}


class Stack(nn.Module):
    """Layers with ReLU between them, and perhaps a normalisation after the first."""

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers, self.norm = nn.ModuleList(layers), norm

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Apply one layer after the other."""
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else x.relu(), edge_index)
            if self.norm is not None and number == 0:
                x = self.norm(x)
        return x


def twice(layer: Callable[[int, int], nn.Module], norm: nn.Module | None = None) -> Callable[[int], nn.Module]:
    """A model of two such layers, made with the number of its outputs."""
    return lambda out: Stack([layer(IN, 8), layer(8, out)], norm)


def mlp(inside: int, outside: int) -> nn.Module:
    """Two linear layers."""
    return nn.Sequential(nn.Linear(inside, outside), nn.ReLU(), nn.Linear(outside, outside))


def pna(inside: int, outside: int) -> nn.Module:
    """A PNA layer."""
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
    """GraphSAGE with an LSTM over the neighbours, to which soft edge weights cannot be applied."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.layer = gnn.SAGEConv(inside, outside, aggr="lstm")

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Apply the layer to edges sorted by receiver, as PyG requires."""
        return self.layer(x, edge_index[:, edge_index[1].argsort(stable=True)])


class Links(nn.Module):
    """A model of links: two nodes are linked if their representations point in the same direction."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_label_index: torch.Tensor) -> torch.Tensor:
        """One number for each pair."""
        z = self.encoder(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1) - 0.1


class Graphs(nn.Module):
    """A model of whole graphs: the mean of the node representations."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor | None = None) -> torch.Tensor:
        """One row for each graph."""
        return gnn.global_mean_pool(self.encoder(x, edge_index), batch)


class TypedStack(nn.Module):
    """Two layers for graphs of several types, with ReLU between them."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any]) -> dict[str, torch.Tensor]:
        """One row for each node of each type."""
        hidden = {kind: value.relu() for kind, value in self.first(x_dict, edge_index_dict).items()}
        return self.second(hidden, edge_index_dict)


class TypedNodes(nn.Module):
    """A model of the papers in a graph of several types."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any]) -> torch.Tensor:
        """One row for each paper."""
        return self.encoder(x_dict, edge_index_dict)["paper"]


class TypedLinks(TypedNodes):
    """A model of links between authors and papers."""

    def forward(
        self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any], edge_label_index: torch.Tensor
    ) -> torch.Tensor:
        """One number for each pair."""
        z = self.encoder(x_dict, edge_index_dict)
        return (z["author"][edge_label_index[0]] * z["paper"][edge_label_index[1]]).sum(-1)


class TypedGraphs(TypedNodes):
    """A model of whole graphs of several types: the means of all types, added up."""

    def forward(
        self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any], batch_dict: dict[str, Any]
    ) -> torch.Tensor:
        """One row for each graph."""
        z = self.encoder(x_dict, edge_index_dict)
        return sum(gnn.global_mean_pool(z[kind], batch_dict[kind]) for kind in z)


class TypedRGCN(nn.Module):
    """RGCN: all types as one graph whose edges know their relation."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.into = nn.ModuleDict({kind: nn.Linear(width, 8) for kind, width in WIDTHS.items()})
        self.first, self.second = (gnn.RGCNConv(8, width, len(RELATIONS)) for width in (8, out))

    def forward(self, x_dict: dict[str, Any], edge_index_dict: dict[Any, Any]) -> dict[str, torch.Tensor]:
        """One row for each node of each type."""
        parts = [layer(x_dict[kind]) for kind, layer in self.into.items()]
        starts = dict(zip(WIDTHS, (0, len(parts[0])), strict=True))
        ends = [edge_index_dict[a, name, b] + torch.tensor([[starts[a]], [starts[b]]]) for a, name, b in RELATIONS]
        kinds = torch.arange(len(ends)).repeat_interleave(torch.tensor([one.size(1) for one in ends]))
        edges = torch.cat(ends, dim=1)
        out = self.second(self.first(torch.cat(parts), edges, kinds).relu(), edges, kinds)
        return dict(zip(WIDTHS, out.split([len(part) for part in parts]), strict=True))


def side_by_side(widths: dict[str, int], out: int) -> nn.Module:
    """One SAGE layer for each relation."""
    return gnn.HeteroConv({(a, name, b): gnn.SAGEConv((widths[a], widths[b]), out) for a, name, b in RELATIONS})


def converted(out: int) -> nn.Module:
    """Two SAGE layers that PyG converts for graphs of several types."""
    model = gnn.to_hetero(Stack([gnn.SAGEConv((-1, -1), 8), gnn.SAGEConv((-1, -1), out)]), (list(WIDTHS), RELATIONS))
    data = typed_graph(0)
    with torch.no_grad():  # so that its layers know their widths
        model(data.x_dict, data.edge_index_dict)
    return model


WIDTHS = {"author": 3, "paper": 4}
RELATIONS = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "rev_cites", "paper")]
RELATIONS += [("paper", "rev_writes", "author")]
TYPED_MODELS: dict[str, Callable[[int], nn.Module]] = {
    "HeteroConv": lambda out: TypedStack(side_by_side(WIDTHS, 8), side_by_side(dict.fromkeys(WIDTHS, 8), out)),
    "to_hetero": converted,
    "HGT": lambda out: TypedStack(
        gnn.HGTConv(WIDTHS, 8, (list(WIDTHS), RELATIONS), heads=2), gnn.HGTConv(8, out, (list(WIDTHS), RELATIONS))
    ),
    "RGCN": TypedRGCN,
    "HAN (global)": lambda out: gnn.HANConv(WIDTHS, out, (list(WIDTHS), RELATIONS)),
}


def small_graph(seed: int) -> Data:
    """A path with some more edges."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.triu(torch.rand(NODES, NODES, generator=generator) < 0.3, 1).nonzero()
    chosen = torch.cat([chosen, torch.tensor([[node, node + 1] for node in range(NODES - 1)])]).unique(dim=0)
    return Data(
        x=torch.randn(NODES, IN, generator=generator), edge_index=torch.cat([chosen, chosen.flip(1)]).T.contiguous()
    )


def typed_graph(seed: int) -> HeteroData:
    """Authors and papers."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    for kind, width in WIDTHS.items():
        data[kind].x = torch.randn(NODES, width, generator=generator)
    data["author", "writes", "paper"].edge_index = torch.randint(NODES, (2, 16), generator=generator)
    data["paper", "cites", "paper"].edge_index = torch.randint(NODES, (2, 10), generator=generator)
    return transforms.ToUndirected(merge=False)(data)


@dataclass(frozen=True)
class Task:
    """A kind of prediction.

    Attributes:
        models: functions that make the models, by name.
        targets: the targets in each graph.
        outputs: calls a model on a graph; returns one row for each target.
        graphs: the graphs.
        settings: further arguments of `butfor.explain`.
    """

    models: dict[str, Callable[[], nn.Module]]
    targets: Sequence[Any]
    outputs: Callable[[nn.Module, Any], torch.Tensor] = lambda model, data: model(data.x, data.edge_index)
    graphs: Sequence[Data | HeteroData] = tuple(small_graph(seed) for seed in range(GRAPHS))
    settings: dict[str, Any] = field(default_factory=dict)

    def model(self, name: str) -> nn.Module:
        """A model whose mean output is 0, because an untrained one may predict the same class for all targets."""
        torch.manual_seed(0)
        model = self.models[name]().eval()
        # A GCN is left unchanged: with a hook, butfor would not use its fast oracle.
        if type(model) is not gnn.GCN:
            shift = torch.cat([self.predictions(model, data) for data in self.graphs]).mean(0)
            model.register_forward_hook(lambda _, __, out: out - shift)
        return model

    def predictions(self, model: nn.Module, data: Data | HeteroData) -> torch.Tensor:
        """The model's outputs for all targets in one graph."""
        with torch.no_grad():
            return self.outputs(model, data)

    def cases(self, model: nn.Module) -> list[tuple[Data | HeteroData, Any]]:
        """Graphs and targets, the least certain predictions first."""
        leads = []
        for number, data in enumerate(self.graphs):
            out = self.predictions(model, data).reshape(len(self.targets), -1)
            best = out.topk(2).values if out.size(1) > 1 else torch.cat([out.abs(), 0 * out], dim=1)
            leads += [(lead, number, place) for place, lead in enumerate((best[:, 0] - best[:, 1]).tolist())]
        return [(self.graphs[number], self.targets[place]) for _, number, place in sorted(leads)[:TRIES]]


def models(
    names: Iterable[str],
    out: int,
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
    known: dict[str, Callable[[int], nn.Module]] = MODELS,
) -> Any:
    """Some of the models with ``out`` outputs, each wrapped by ``wrap``."""
    return {name: (lambda make=known[name]: wrap(make(out))) for name in names}


def typed_task(
    wrap: Callable[[nn.Module], nn.Module],
    out: int,
    targets: Sequence[Any],
    more: Callable[[HeteroData], tuple[Any, ...]] = lambda _: (),
    graphs: int = GRAPHS,
    **settings: Any,
) -> Task:
    """A task on graphs of several types; ``more`` are further arguments of its models."""
    return Task(
        models(TYPED_MODELS, out, wrap, TYPED_MODELS),
        targets,
        lambda model, data: model(data.x_dict, data.edge_index_dict, *more(data)),
        tuple(typed_graph(seed) for seed in range(graphs)),
        settings,
    )


def one_graph(data: HeteroData) -> tuple[dict[str, torch.Tensor]]:
    """That all nodes of each type belong to the same graph."""
    return ({kind: torch.zeros(NODES, dtype=torch.long) for kind in data.node_types},)


FEW = ("GCN", "GraphSAGE mean", "GAT", "GIN", "PNA")
ABOVE_ZERO = {"goal": butfor.Goal(threshold=0.0)}
PAIRS = tuple(butfor.Pair(u, v) for u in range(NODES) for v in range(u + 1, NODES))
TASKS = {
    "node class": Task(models(MODELS, OUT), range(NODES)),
    "node value": Task(models(FEW, 1), range(NODES), settings=ABOVE_ZERO),
    "link": Task(
        models(FEW, 4, Links),
        PAIRS,
        lambda model, data: model(data.x, data.edge_index, torch.tensor(PAIRS).T),
        settings=ABOVE_ZERO,
    ),
    "graph class": Task(
        models(FEW, OUT, Graphs), [None], graphs=tuple(small_graph(seed) for seed in range(GRAPHS * NODES))
    ),
    "typed node class": typed_task(TypedNodes, OUT, range(NODES), node_type="paper"),
    "typed node value": typed_task(TypedNodes, 1, range(NODES), node_type="paper", **ABOVE_ZERO),
    "typed link": typed_task(
        TypedLinks, 4, PAIRS, lambda _: (torch.tensor(PAIRS).T,), node_type=("author", "paper"), **ABOVE_ZERO
    ),
    "typed graph class": typed_task(TypedGraphs, OUT, [None], one_graph, GRAPHS * NODES),
}


def cell(
    model: nn.Module, cases: list[tuple[Any, Any]], method: butfor.methods.Method, settings: dict[str, Any]
) -> tuple[str, str]:
    """The sign of one combination and, if nothing is found, the reason: an error, or a key of `NOTHING_FOUND`."""
    asked = False
    for data, target in cases:
        try:
            result = butfor.explain(model, data, target, method, budget=butfor.Budget(300), **settings)
        except ButforError as problem:
            return REFUSED, str(problem).split(";")[0].split(":")[0]
        if result.found:
            return WITHOUT_GRADIENTS if "no gradients" in result.note else FOUND, ""
        asked |= result.evaluations > 0
    return NOTHING, "asked" if asked else "nothing to ask"


def tables() -> str:
    """All tables as Markdown."""
    lines = [f"- `{sign}`: {meaning}" for sign, meaning in SIGNS.items()]
    lines += ["", f"| task | edits | model | {' | '.join(METHODS)} |", f"|---|---|---|{'---|' * len(METHODS)}"]
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for title, task in TASKS.items():
        for edits, space in EDITS.items():
            rows: dict[tuple[str, ...], list[str]] = {}
            for name in task.models:
                model = task.model(name)
                cases, settings = task.cases(model), {**task.settings, "space": space}
                cells = [cell(model, cases, method, settings) for method in METHODS.values()]
                rows.setdefault(tuple(sign for sign, _ in cells), []).append(name)
                for method, why in zip(METHODS, cells, strict=True):
                    reasons.setdefault(why, {})[method] = None
            for signs, names in rows.items():
                lines.append(f"| {title} | {edits} | {describe(names, task)} | {' | '.join(signs)} |")
    lines += ["", f"Why `{REFUSED}`:", "", *(f"- {reason}." for sign, reason in reasons if sign == REFUSED)]
    lines += ["", f"Why `{NOTHING}`:", ""]
    for what, why in NOTHING_FOUND.items():
        if (NOTHING, what) in reasons:
            lines.append(f"- {', '.join(reasons[NOTHING, what])}: {why}.")
    lines += [
        "",
        f"*All* models of a node's class: {', '.join(MODELS)}. Of the other tasks: {', '.join(FEW)}. Of graphs of "
        f"several types: {', '.join(TYPED_MODELS)}.",
    ]
    return "\n".join(lines)


def describe(names: list[str], task: Task) -> str:
    """These models of a task in a few words."""
    others = [name for name in task.models if name not in names]
    if len(task.models) == 1 or len(others) >= len(names):
        return ", ".join(names)
    return f"all but {', '.join(others)}" if others else "all"


def main() -> None:
    """Print the tables and, if asked to, write them into the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="also write the tables into docs/results/support.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    made = tables()
    print(made)
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
