"""Where the model and the graphs come from: the options that several commands share."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter, validators

from butfor.boundary.reading import reading
from butfor.cli.output import note
from butfor.cli.user_model import make_user_model
from butfor.datasets.registry import registry
from butfor.datasets.wording import expected_graphs, expected_tables
from butfor.errors import ButforError, GraphError, InputError, ModelError

if TYPE_CHECKING:
    from torch import nn
    from torch_geometric.data import Data

__all__ = ["GRAPH_HELP", "NODE_TABLE_HELP", "GraphOptions", "ModelAndGraphs", "Seed", "Source", "read_graphs"]

Seed = Annotated[int, Parameter(validator=validators.Number(gte=0, lt=2**63))]

MODEL_GROUP = Group("Model", sort_key=10)
GRAPH_GROUP = Group("Graph", sort_key=11)

# What can be given as a graph: made from the registry, so that a new dataset or file format is in every help text.
GRAPH_HELP = expected_graphs()
NODE_TABLE_HELP = f"the node table that goes with an edge list in {expected_tables()}."


@Parameter(name="*")
@dataclass(frozen=True)
class GraphOptions:
    """How a graph is read.

    Attributes:
        graph_seed: the seed of a generated graph; 0 by default.
        node_table: `NODE_TABLE_HELP` describes it.
        directed: whether edges have a direction; by default this is found out from the graph. With --undirected,
            directions that are missing in the graph are added, as in a file that lists every edge once.
    """

    graph_seed: Annotated[Seed | None, Parameter(group=GRAPH_GROUP)] = None
    node_table: Annotated[Path | None, Parameter(group=GRAPH_GROUP, help=NODE_TABLE_HELP)] = None
    directed: Annotated[bool | None, Parameter(group=GRAPH_GROUP, negative="--undirected")] = None


@dataclass(frozen=True, eq=False)
class ModelAndGraphs:
    """A model, in evaluation mode, and its graphs: one, or several that are each predicted as a whole.

    Attributes:
        model: the model.
        graphs: the graphs, in the order of their file.
        test: the numbers of the graphs that were kept for testing, if the checkpoint says so.
    """

    model: "nn.Module"
    graphs: "list[Data]"
    test: tuple[int, ...] = ()

    @property
    def graph(self) -> "Data":
        """The only graph.

        Raises:
            InputError: if there are several.
        """
        if len(self.graphs) != 1:
            raise InputError(
                f"there are {len(self.graphs)} graphs; nodes and links are explained in a single one, whole graphs "
                "with --graphs"
            )
        return self.graphs[0]


def read_graphs(name: str, options: GraphOptions) -> "tuple[list[Data], dict[str, object]]":
    """Return the graphs of this name, file or folder, and a description by which they can be found again.

    Raises:
        InputError: if an option does not go with this kind of graph.
        GraphError: if there is no such graph, or it cannot be used.
    """
    for failure in registry.failures:
        note(failure)
    if name in registry.datasets:
        return _generate(name, options)
    path = Path(name)
    with reading(path):
        there = path.exists()
    if not there:
        known = ", ".join(registry.datasets)
        raise GraphError(f"{name} is neither a file or folder nor a generated graph ({known})")
    if options.graph_seed is not None:
        raise InputError(f"--graph-seed goes with a generated graph, not with the file {name}")
    from butfor.datasets import load_graphs

    undirected = options.directed is False
    graphs = load_graphs(path, nodes=options.node_table, undirected=undirected)
    info = _describe(graphs, path.resolve())
    if options.node_table is not None:
        info["node_table"] = str(options.node_table.resolve())
    return graphs, {**info, "undirected": undirected}


def _generate(name: str, options: GraphOptions) -> "tuple[list[Data], dict[str, object]]":
    dataset = registry.datasets[name]
    if options.node_table is not None:
        raise InputError(f"--node-table goes with an edge list, not with the generator {name}")
    if options.graph_seed is not None and not dataset.seeded:
        raise InputError(f"--graph-seed goes with a graph that depends on a seed, and {name} does not")
    seed = options.graph_seed or 0
    graphs = dataset.graphs(seed)
    # The graphs are found again by this name, whatever name they carry themselves.
    return graphs, {**_describe(graphs, None), "name": name, "seed": seed if dataset.seeded else None}


def _describe(graphs: "list[Data]", path: Path | None) -> dict[str, object]:
    """What `describe` says about one graph; of several graphs, their number and one hash over all their hashes."""
    from butfor.datasets import describe

    each = [describe(graph, path) for graph in graphs]
    if len(each) == 1:
        return each[0]
    digest = hashlib.sha256("".join(str(info["sha256"]) for info in each).encode())
    shared = {key: value for key, value in each[0].items() if key not in ("nodes", "edges", "sha256")}
    return {**shared, "graphs": len(each), "sha256": digest.hexdigest()[:16]}


@Parameter(name="*")
@dataclass(frozen=True)
class Source:
    """A model and a graph, or several.

    Attributes:
        checkpoint: a folder that butfor train wrote; it remembers its graph.
        example: the example that comes with butfor: the paper's GCN on Tree-Cycles.
        published: weights that the paper's authors published (.npz).
        model: a model of your own, as package.module:factory; called without arguments, the factory returns
            a torch.nn.Module. Modules in the current folder are found, too.
        weights: the weights of the model given by --model (.safetensors).
        graph: `GRAPH_HELP` describes it. Not needed with a checkpoint.
        options: how the graph is read.
    """

    checkpoint: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    example: Annotated[bool, Parameter(group=MODEL_GROUP, negative=(), show_default=False)] = False
    published: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    model: Annotated[str | None, Parameter(group=MODEL_GROUP)] = None
    weights: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    graph: Annotated[str | None, Parameter(group=GRAPH_GROUP, help=f"{GRAPH_HELP} Not needed with a checkpoint.")] = (
        None
    )
    options: GraphOptions = GraphOptions()

    @property
    def names_model(self) -> bool:
        """Whether a model is named."""
        return bool(self._named)

    @property
    def _named(self) -> list[str]:
        """The options that name a model."""
        return [name for name in ("checkpoint", "example", "published", "model") if getattr(self, name)]

    def read(self) -> ModelAndGraphs:
        """Read the model, in evaluation mode, and the graphs.

        Raises:
            InputError: if too little or too much is given.
            ModelError, GraphError: if what is given cannot be used.
        """
        named = self._named
        if len(named) != 1:
            given = " and ".join(f"--{name}" for name in named) + " are both given" if named else "none is given"
            raise InputError(
                f"one model is needed and {given}: --checkpoint FOLDER, --published FILE, --model MODULE:FACTORY, or "
                "--example to try it out"
            )
        if self.weights is not None and self.model is None:
            raise InputError(f"--weights goes with --model, not with --{named[0]}")
        if self.checkpoint is not None:
            return self._from_checkpoint(self.checkpoint)
        if self.example:
            return self._from_example()
        if self.graph is None:
            raise InputError(f"--{named[0]} needs a graph: give --graph")
        from butfor.models import load_published

        model = load_published(self.published) if self.published else make_user_model(str(self.model), self.weights)
        return ModelAndGraphs(model, read_graphs(self.graph, self.options)[0])

    def _from_example(self) -> ModelAndGraphs:
        from butfor.models import example

        if self.graph is not None or self.options != GraphOptions():
            raise InputError("--example has its own graph; --graph and its options go with another model")
        model, data = example()
        return ModelAndGraphs(model, [data])

    def _from_checkpoint(self, folder: Path) -> ModelAndGraphs:
        from butfor.models import load_checkpoint

        model, info = load_checkpoint(folder)
        if self.graph is not None:
            # The user wants another graph; whether the model fits it shows when it is run.
            return ModelAndGraphs(model, read_graphs(self.graph, self.options)[0])
        known: dict[str, Any] = info.get("data", {})
        name = known.get("path") or known.get("name")
        if not isinstance(name, str):
            raise ModelError(f"the checkpoint {folder} does not say which graph it is of: give --graph")
        if self.options.graph_seed is not None or self.options.node_table is not None:
            raise InputError("--graph-seed and --node-table go with --graph; the checkpoint knows its own graph")
        table = known.get("node_table")
        options = GraphOptions(
            graph_seed=None if "path" in known else known.get("seed"),
            node_table=None if table is None else Path(table),
            directed=False if known.get("undirected") else None,
        )
        try:
            graphs, found = read_graphs(name, options)
        except ButforError as problem:
            raise GraphError(
                f"cannot read the graph of the checkpoint {folder}: {problem}; if it was moved, give --graph"
            ) from problem
        if found["sha256"] != known.get("sha256"):
            raise GraphError(
                f"{name} is no longer the graph that the checkpoint {folder} was trained on "
                f"({found['sha256']} instead of {known.get('sha256')}); train again, or give another --graph"
            )
        test = tuple((info.get("training") or {}).get("test", ()))
        if test and max(test) >= len(graphs):
            raise ModelError(
                f"the checkpoint {folder} says that graph {max(test)} was left for testing, but {name} has graphs 0 to "
                f"{len(graphs) - 1}: train again"
            )
        return ModelAndGraphs(model, graphs, test)
