"""Which of PyG's layers run as programs, found out by trying: the table of docs/results/layers.md.

    python -m benchmarks.layers              # prints it, in a minute or two
    python -m benchmarks.layers --write      # also writes it into docs/results/layers.md, between its markers

Each layer that PyG exports stands twice, one behind the other, in an untrained model of node classes on a small random
graph. The problems of all nodes are built as for any question, and the table says which oracle they got. A program is
compared with the general oracle on every single edit and on some random sets.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import conv

import butfor
from butfor.edits.edits import pack
from butfor.errors import ButforError
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.oracle import ProgramOracle, program_oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butfor.oracle.base import Oracle
    from butfor.problem import Problem
    from butfor.session import Session

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "layers.md"
BEGIN, END = "<!-- made by python -m benchmarks.layers --write -->", "<!-- end -->"
NODES, WIDTH, EDGE_WIDTH, RELATIONS, CLASSES = 12, 8, 3, 2, 3
CLOSE = 1e-4
NODE_TYPES = ["author", "paper"]
EDGE_TYPES = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "written_by", "author")]

PROGRAM, GENERAL, NOT_AT_ALL, MISSING = "program", "general", "–", "not installed"


class Two(nn.Module):
    """Two layers, each given what its ``forward`` names, and a linear layer behind them."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.last = first, second, nn.Linear(WIDTH, CLASSES)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_type: Tensor | None = None,
        pos: Tensor | None = None,
        normal: Tensor | None = None,
        node_type: Tensor | None = None,
    ) -> Tensor:
        """Logits of every node."""
        known = {"edge_index": edge_index, "hyperedge_index": edge_index, "num_edges": len(x), "x_0": x}
        known |= {"edge_weight": edge_weight, "edge_attr": edge_attr, "edge_type": edge_type}
        known |= {"pos": pos, "normal": normal, "node_type": node_type}
        if edge_type is not None:
            known |= {f"{sign}_edge_index": edge_index[:, edge_type == i] for i, sign in enumerate(("pos", "neg"))}
        for layer in (self.first, self.second):
            names = [name for name in signature(layer.forward).parameters if known.get(name) is not None]
            out = layer(x, **{name: known[name] for name in names})
            x = (out[0] if isinstance(out, tuple) else out).tanh()
        return self.last(x)


class Typed(nn.Module):
    """The same on a graph of several types."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.last = first, second, nn.Linear(WIDTH, CLASSES)

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[Any, Tensor]) -> Tensor:
        """Logits of every paper."""
        for layer in (self.first, self.second):
            x_dict = {kind: value.tanh() for kind, value in layer(x_dict, edge_index_dict).items()}
        return self.last(x_dict["paper"])


class Own(gnn.MessagePassing):
    """A layer of one's own: the mean of messages from both ends."""

    def __init__(self) -> None:
        super().__init__(aggr="mean")
        self.linear = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """What arrives, and the node itself."""
        return x + self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        """A function of both ends."""
        return self.linear(torch.cat([x_i, x_j - x_i], dim=-1)).relu()


class Dna(nn.Module):
    """A DNA layer, which reads what all layers before it said."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = gnn.DNAConv(WIDTH, heads=2)

    def forward(self, x: Tensor, edge_index: Tensor, x_0: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """What came in first, and what the last layer said of it."""
        return self.layer(torch.stack([x_0, x], dim=1), edge_index, edge_weight)


class Colours(nn.Module):
    """A WL layer, which gives whole numbers, as features again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = gnn.WLConv()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """One of `WIDTH` colours for each node."""
        return nn.functional.one_hot(self.layer(x.argmax(dim=1), edge_index) % WIDTH, WIDTH).float()


class Without(nn.Module):
    """A layer that finds its edges itself, by what is near."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor, pos: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """It is given no edges."""
        return self.layer(x) if pos is None else self.layer(x, pos)


def mlp(inside: int, outside: int = WIDTH) -> nn.Module:
    """Two linear layers."""
    return nn.Sequential(nn.Linear(inside, outside), nn.ReLU(), nn.Linear(outside, outside))


def wide(given: tuple[str, ...]) -> int | None:
    """How wide the attributes of edges are, where there are any."""
    return EDGE_WIDTH if "edge_attr" in given else None


def hetero(_: tuple[str, ...]) -> nn.Module:
    """A GraphSAGE layer for each relation."""
    return gnn.HeteroConv({relation: gnn.SAGEConv((WIDTH, WIDTH), WIDTH) for relation in EDGE_TYPES})


@dataclass(frozen=True)
class Layer:
    """How to make a layer, and with which fields of the graph besides features and edges it is tried."""

    make: Callable[[tuple[str, ...]], nn.Module]
    forms: tuple[tuple[str, ...], ...] = ((),)
    second: Callable[[tuple[str, ...]], nn.Module] | None = None
    typed: bool = False

    def model(self, given: tuple[str, ...]) -> nn.Module:
        """Two of them, the same each time."""
        torch.manual_seed(0)
        model = (Typed if self.typed else Two)(self.make(given), (self.second or self.make)(given)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Many layers begin with a bias of 0, which would hide what it does.
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model


EITHER_WEIGHT, EITHER_ATTRIBUTE = ((), ("edge_weight",)), ((), ("edge_attr",))
ATTRIBUTE, TYPE, PLACE = (("edge_attr",),), (("edge_type",),), (("pos",),)
W, R, D = WIDTH, RELATIONS, EDGE_WIDTH
HISTOGRAM = torch.tensor([1, 3, 4, 3, 1])
METADATA = (NODE_TYPES, EDGE_TYPES)

LAYERS: dict[str, Layer] = {
    "MessagePassing": Layer(lambda _: Own()),
    "SimpleConv": Layer(lambda _: gnn.SimpleConv("mean", "sum"), EITHER_WEIGHT),
    "GCNConv": Layer(lambda _: gnn.GCNConv(W, W), EITHER_WEIGHT),
    "ChebConv": Layer(lambda _: gnn.ChebConv(W, W, K=3), EITHER_WEIGHT),
    "SAGEConv": Layer(lambda _: gnn.SAGEConv(W, W)),
    "CuGraphSAGEConv": Layer(lambda _: gnn.CuGraphSAGEConv(W, W)),
    "GraphConv": Layer(lambda _: gnn.GraphConv(W, W), EITHER_WEIGHT),
    "GravNetConv": Layer(lambda _: Without(gnn.GravNetConv(W, W, 2, 4, k=3))),
    "GatedGraphConv": Layer(lambda _: gnn.GatedGraphConv(W, 2), EITHER_WEIGHT),
    "ResGatedGraphConv": Layer(lambda given: gnn.ResGatedGraphConv(W, W, edge_dim=wide(given)), EITHER_ATTRIBUTE),
    "GATConv": Layer(lambda given: gnn.GATConv(W, 4, heads=2, edge_dim=wide(given)), EITHER_ATTRIBUTE),
    "CuGraphGATConv": Layer(lambda _: gnn.CuGraphGATConv(W, W)),
    "FusedGATConv": Layer(lambda _: gnn.FusedGATConv(W, W, add_self_loops=False)),
    "GATv2Conv": Layer(lambda given: gnn.GATv2Conv(W, 4, heads=2, edge_dim=wide(given)), EITHER_ATTRIBUTE),
    "TransformerConv": Layer(lambda given: gnn.TransformerConv(W, 4, heads=2, edge_dim=wide(given)), EITHER_ATTRIBUTE),
    "AGNNConv": Layer(lambda _: gnn.AGNNConv()),
    "TAGConv": Layer(lambda _: gnn.TAGConv(W, W, K=2), EITHER_WEIGHT),
    "GINConv": Layer(lambda _: gnn.GINConv(mlp(W), train_eps=True)),
    "GINEConv": Layer(lambda given: gnn.GINEConv(mlp(W), edge_dim=wide(given)), ATTRIBUTE),
    "ARMAConv": Layer(lambda _: gnn.ARMAConv(W, W, num_stacks=2, num_layers=2), EITHER_WEIGHT),
    "SGConv": Layer(lambda _: gnn.SGConv(W, W, K=2), EITHER_WEIGHT),
    "SSGConv": Layer(lambda _: gnn.SSGConv(W, W, alpha=0.1, K=2), EITHER_WEIGHT),
    "APPNP": Layer(lambda _: gnn.APPNP(K=2, alpha=0.1), EITHER_WEIGHT),
    "MFConv": Layer(lambda _: gnn.MFConv(W, W)),
    "RGCNConv": Layer(lambda _: gnn.RGCNConv(W, W, R), TYPE),
    "FastRGCNConv": Layer(lambda _: gnn.FastRGCNConv(W, W, R), TYPE),
    "CuGraphRGCNConv": Layer(lambda _: gnn.CuGraphRGCNConv(W, W, R), TYPE),
    "RGATConv": Layer(lambda given: gnn.RGATConv(W, W, R, edge_dim=wide(given)), (*TYPE, ("edge_type", "edge_attr"))),
    "SignedConv": Layer(
        lambda _: gnn.SignedConv(W, W // 2, first_aggr=True),
        TYPE,
        lambda _: gnn.SignedConv(W // 2, W // 2, first_aggr=False),
    ),
    "DNAConv": Layer(lambda _: Dna(), EITHER_WEIGHT),
    "PointNetConv": Layer(lambda _: gnn.PointNetConv(mlp(W + 3), mlp(W)), PLACE),
    "GMMConv": Layer(lambda _: gnn.GMMConv(W, W, dim=D, kernel_size=2), ATTRIBUTE),
    "SplineConv": Layer(lambda _: gnn.SplineConv(W, W, dim=D, kernel_size=2), ATTRIBUTE),
    "NNConv": Layer(lambda _: gnn.NNConv(W, W, nn.Linear(D, W * W), aggr="mean"), ATTRIBUTE),
    "CGConv": Layer(lambda given: gnn.CGConv(W, wide(given) or 0), EITHER_ATTRIBUTE),
    "EdgeConv": Layer(lambda _: gnn.EdgeConv(mlp(2 * W))),
    "DynamicEdgeConv": Layer(lambda _: Without(gnn.DynamicEdgeConv(mlp(2 * W), k=3))),
    "XConv": Layer(lambda _: Without(gnn.XConv(W, W, dim=3, kernel_size=2)), PLACE),
    "PPFConv": Layer(lambda _: gnn.PPFConv(mlp(W + 4), mlp(W)), (("pos", "normal"),)),
    "FeaStConv": Layer(lambda _: gnn.FeaStConv(W, W, heads=2)),
    "PointTransformerConv": Layer(lambda _: gnn.PointTransformerConv(W, W), PLACE),
    "HypergraphConv": Layer(lambda _: gnn.HypergraphConv(W, W)),
    "LEConv": Layer(lambda _: gnn.LEConv(W, W), EITHER_WEIGHT),
    "PNAConv": Layer(
        lambda given: gnn.PNAConv(
            W, W, ["mean", "min", "max", "std"], ["identity", "amplification"], HISTOGRAM, edge_dim=wide(given)
        ),
        EITHER_ATTRIBUTE,
    ),
    "ClusterGCNConv": Layer(lambda _: gnn.ClusterGCNConv(W, W, diag_lambda=0.5)),
    "GENConv": Layer(lambda given: gnn.GENConv(W, W, edge_dim=wide(given)), EITHER_ATTRIBUTE),
    "GCN2Conv": Layer(lambda _: gnn.GCN2Conv(W, alpha=0.2), EITHER_WEIGHT),
    "PANConv": Layer(lambda _: gnn.PANConv(W, W, filter_size=2)),
    "WLConv": Layer(lambda _: Colours()),
    "WLConvContinuous": Layer(lambda _: gnn.WLConvContinuous(), EITHER_WEIGHT),
    "FiLMConv": Layer(lambda given: gnn.FiLMConv(W, W, R if given else 1), ((), *TYPE)),
    "SuperGATConv": Layer(lambda _: gnn.SuperGATConv(W, 4, heads=2)),
    "FAConv": Layer(lambda _: gnn.FAConv(W)),
    "EGConv": Layer(lambda _: gnn.EGConv(W, W, aggregators=["symnorm", "max", "std"], num_heads=2, num_bases=2)),
    "PDNConv": Layer(lambda _: gnn.PDNConv(W, W, edge_dim=D, hidden_channels=4), ATTRIBUTE),
    "GeneralConv": Layer(
        lambda given: gnn.GeneralConv(W, W, in_edge_channels=wide(given), attention=True), EITHER_ATTRIBUTE
    ),
    "HGTConv": Layer(lambda _: gnn.HGTConv(W, W, METADATA, heads=2), typed=True),
    "HEATConv": Layer(lambda _: gnn.HEATConv(W, W, 2, R, 4, D, 4), (("node_type", "edge_type", "edge_attr"),)),
    "HeteroConv": Layer(hetero, typed=True),
    "HANConv": Layer(lambda _: gnn.HANConv(W, W, METADATA, heads=2), typed=True),
    "LGConv": Layer(lambda _: gnn.LGConv(), EITHER_WEIGHT),
    "PointGNNConv": Layer(lambda _: gnn.PointGNNConv(mlp(W, 3), mlp(W + 3), mlp(W)), PLACE),
    "GPSConv": Layer(lambda _: gnn.GPSConv(W, gnn.GINConv(mlp(W)), heads=2)),
    "AntiSymmetricConv": Layer(lambda _: gnn.AntiSymmetricConv(W, num_iters=2)),
    "DirGNNConv": Layer(lambda _: gnn.DirGNNConv(gnn.SAGEConv(W, W))),
    "MixHopConv": Layer(lambda _: gnn.MixHopConv(W, W // 2, powers=[0, 2]), EITHER_WEIGHT),
    "MeshCNNConv": Layer(lambda _: gnn.MeshCNNConv(W, W)),
}


def graph(given: Iterable[str]) -> Data:
    """A path with some more edges, and these fields: an edge carries the same both ways."""
    random = torch.Generator().manual_seed(1)
    pairs = torch.triu(torch.rand(NODES, NODES, generator=random) < 0.15, 2).nonzero()
    pairs = torch.cat([pairs, torch.tensor([[node, node + 1] for node in range(NODES - 1)])])
    count = len(pairs)
    fields = {
        "edge_weight": (0.5 + torch.rand(count, generator=random)).repeat(2),
        "edge_attr": torch.rand(count, EDGE_WIDTH, generator=random).repeat(2, 1),
        "edge_type": torch.randint(RELATIONS, (count,), generator=random).repeat(2),
        "pos": torch.randn(NODES, 3, generator=random),
        "normal": nn.functional.normalize(torch.randn(NODES, 3, generator=random)),
        "node_type": torch.randint(2, (NODES,), generator=random),
    }
    x = torch.randn(NODES, WIDTH, generator=random)
    edge_index = torch.cat([pairs, pairs.flip(1)]).T.contiguous()
    return Data(x=x, edge_index=edge_index, **{name: fields[name] for name in given})


def mesh() -> Data:
    """Nodes that hear of four others each, as the edges of a mesh do."""
    nodes = torch.arange(NODES)
    near = torch.stack([(nodes + step) % NODES for step in (-2, -1, 1, 2)], dim=1)
    random = torch.Generator().manual_seed(1)
    ends = torch.stack([near.reshape(-1), nodes.repeat_interleave(4)])
    return Data(x=torch.randn(NODES, WIDTH, generator=random), edge_index=ends)


def typed_graph() -> HeteroData:
    """Authors and papers."""
    random = torch.Generator().manual_seed(1)
    data = HeteroData()
    for kind in NODE_TYPES:
        data[kind].x = torch.randn(NODES, WIDTH, generator=random)
    writes = torch.randint(NODES, (2, 20), generator=random)
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "cites", "paper"].edge_index = torch.randint(NODES, (2, 16), generator=random)
    data["paper", "written_by", "author"].edge_index = writes.flip(0)
    return data


@dataclass(frozen=True)
class Verdict:
    """What became of one form of a layer: the oracle, whether it has gradients, and why it is not the program."""

    oracle: str
    gradients: bool = False
    reason: str = ""


def verdict(name: str, given: tuple[str, ...]) -> Verdict:
    """Make the model, and build the problems of all nodes."""
    layer = LAYERS[name]
    settings = {"node_type": "paper"} if layer.typed else {}
    data = typed_graph() if layer.typed else mesh() if name == "MeshCNNConv" else graph(given)
    try:
        model = layer.model(given)
    except ImportError as problem:
        return Verdict(MISSING, reason=words(problem))
    try:
        session = butfor.prepare(model, data, **settings)
        problems = [session.problem(node) for node in range(NODES)]
    except ButforError as problem:
        return Verdict(MISSING if isinstance(problem.__cause__, ImportError) else NOT_AT_ALL, reason=words(problem))
    except Exception as problem:
        return Verdict(NOT_AT_ALL, reason=f"a fault of butfor: {type(problem).__name__}: {words(problem)}")
    reasons = [why_general(session, problem) for problem in problems]
    gradients = all(has_gradients(problem.oracle, problem) for problem in problems)
    told = [reason for reason in reasons if reason]
    if not told:
        return Verdict(PROGRAM, gradients)
    some = "" if len(told) == len(reasons) else f" ({len(told)} of {len(reasons)} nodes)"
    return Verdict(GENERAL, gradients, max(set(told), key=told.count) + some)


def why_general(session: Session, problem: Problem) -> str:
    """Why a problem is not answered by the program; empty where it is, and rightly so."""
    if isinstance(problem.oracle, ProgramOracle):
        return "" if is_right(problem) else "program and model differ, and nothing noticed"
    program = program_oracle(ModelOracle(session.predictor))
    if program is None:
        return "a graph of several types" if session.graph.types is not None else "no program was tried"
    return "; ".join(filter(None, (program.refusal(problem.edits), problem.note.lower().rstrip("."))))


def is_right(problem: Problem) -> bool:
    """Whether program and model agree on every single edit and on some random sets."""
    oracle, edits = problem.oracle, problem.edits
    assert isinstance(oracle, ProgramOracle)
    random = np.random.default_rng(0)
    sets = [[edit] for edit in range(len(edits))]
    sets += [np.flatnonzero(random.random(len(edits)) < share).tolist() for share in (0.1, 0.3, 0.5, 0.7, 0.9) * 4]
    mine, truth = (one.logits([(edits, pack(sets))])[0] for one in (oracle, oracle.general))
    return bool(torch.allclose(mine, truth, atol=CLOSE, rtol=CLOSE, equal_nan=True))


def has_gradients(oracle: Oracle, problem: Problem) -> bool:
    """Whether there is a relaxation, with finite gradients."""
    relaxation = oracle.relax([problem.edits])
    if relaxation is None:
        return False
    weights = torch.full((len(problem.edits),), 0.9, requires_grad=True)
    (slope,) = torch.autograd.grad(relaxation.logits(weights).sum(), weights)
    return bool(slope.isfinite().all())


def words(problem: Exception) -> str:
    """What went wrong, on one line."""
    return " ".join(str(problem).split()) or type(problem).__name__


def table() -> str:
    """The counts and the table as Markdown."""
    rows = ["| layer | given besides | oracle | gradients | why |", "|---|---|---|---|---|"]
    whole: dict[str, list[str]] = {}
    for name in conv.__all__:
        verdicts = {given: verdict(name, given) for given in LAYERS[name].forms}
        for given, one in verdicts.items():
            gradients = "" if one.oracle in (NOT_AT_ALL, MISSING) else "yes" if one.gradients else "no"
            rows.append(f"| {name} | {', '.join(given)} | {one.oracle} | {gradients} | {one.reason} |")
            print(rows[-1], flush=True)
        found = {one.oracle for one in verdicts.values()}
        least = next(kind for kind in (MISSING, NOT_AT_ALL, GENERAL, PROGRAM) if kind in found)
        whole.setdefault(least, []).append(name)
    program, general, never, missing = (whole.get(kind, []) for kind in (PROGRAM, GENERAL, NOT_AT_ALL, MISSING))
    total = len(conv.__all__)
    lines = [
        f"**{len(program)} of {total} layers on the program**, or of the {total - len(missing)} that could be run.",
        "",
    ]
    if general:
        lines += [f"By the general oracle, in at least one form ({len(general)}): {', '.join(general)}.", ""]
    if never:
        lines += [f"Not at all ({len(never)}): {', '.join(never)}.", ""]
    if missing:
        lines += [f"For want of a package that is not installed ({len(missing)}): {', '.join(missing)}.", ""]
    return "\n".join([*lines, *rows])


def main() -> None:
    """Print the table and, if asked to, write it into the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="also write the table into docs/results/layers.md")
    parser.add_argument("--only", nargs="+", choices=LAYERS, metavar="LAYER", help="print the rows of these layers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in options.only or ():
        for given in LAYERS[name].forms:
            print(name, given, verdict(name, given))
    if options.only:
        return
    made = table()
    print(f"\n{made.splitlines()[0]}")
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
