"""Where the model and the graphs come from: the options that several commands share."""

import hashlib
import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter, validators

from butfor.errors import ButforError, GraphError, InputError, ModelError, one_line
from butfor.files.reading import reading

if TYPE_CHECKING:
    from torch import nn
    from torch_geometric.data import Data

__all__ = ["GraphOptions", "Seed", "Source", "Subject", "read_graphs"]

Seed = Annotated[int, Parameter(validator=validators.Number(gte=0, lt=2**63))]

MODEL_GROUP = Group("Model", sort_key=10)
GRAPH_GROUP = Group("Graph", sort_key=11)


@Parameter(name="*")
@dataclass(frozen=True)
class GraphOptions:
    """How a graph is read.

    Attributes:
        graph_seed: the seed of a generated graph; 0 unless given.
        node_table: the node table that goes with an edge list in .csv or .parquet.
        directed: whether edges have a direction; found out unless given. Undirected adds the missing
            directions of a file that names every edge once.
    """

    graph_seed: Annotated[Seed | None, Parameter(group=GRAPH_GROUP)] = None
    node_table: Annotated[Path | None, Parameter(group=GRAPH_GROUP)] = None
    directed: Annotated[bool | None, Parameter(group=GRAPH_GROUP, negative="--undirected")] = None


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, in evaluation mode, and its graphs: one, or several that are each predicted as a whole.

    Attributes:
        model: the model.
        graphs: the graphs, in the order of their file.
        test: the numbers of those that were left for testing, where the checkpoint says so.
    """

    model: "nn.Module"
    graphs: "list[Data]"
    test: tuple[int, ...] = ()

    @property
    def graph(self) -> "Data":
        """The only graph.

        Raises:
            InputError: there are several.
        """
        if len(self.graphs) != 1:
            raise InputError(
                f"there are {len(self.graphs)} graphs; nodes and links are explained in a single one, whole graphs "
                "with --graphs"
            )
        return self.graphs[0]


def read_graphs(name: str, options: GraphOptions) -> "tuple[list[Data], dict[str, object]]":
    """The graphs of this name, file or folder, and what is needed to find them again.

    Raises:
        InputError: an option does not go with this kind of graph.
        GraphError: there is no such graph, or it cannot be used.
    """
    from butfor.datasets import GENERATORS, ba_2motifs

    known = [*GENERATORS, "ba-2motifs"]
    if name in known:
        if options.node_table is not None:
            raise InputError(f"--node-table goes with an edge list, not with the generator {name}")
        seed = options.graph_seed or 0
        graphs = [GENERATORS[name](seed)] if name in GENERATORS else ba_2motifs(seed=seed)
        return graphs, _describe(graphs, None)
    path = Path(name)
    with reading(path):
        there = path.exists()
    if not there:
        raise GraphError(f"{name} is neither a file or folder nor a generated graph ({', '.join(known)})")
    if options.graph_seed is not None:
        raise InputError(f"--graph-seed goes with a generated graph, not with the file {name}")
    undirected = options.directed is False
    graphs = _load(path, options.node_table, undirected)
    info = _describe(graphs, path.resolve())
    if options.node_table is not None:
        info["node_table"] = str(options.node_table.resolve())
    return graphs, {**info, "undirected": undirected}


def _load(path: Path, node_table: Path | None, undirected: bool) -> "list[Data]":
    from butfor.datasets import load_graphs, load_mutagenicity

    # Here the files do not say what the labels mean: atoms, bonds and classes get their names.
    if node_table is None and any((place / "Mutagenicity_edge_gt.txt").is_file() for place in (path, path / "raw")):
        return load_mutagenicity(path)
    return load_graphs(path, nodes=node_table, undirected=undirected)


def _describe(graphs: "list[Data]", path: Path | None) -> dict[str, object]:
    """What `describe` says of one graph; of several, their number, and one hash over all of theirs."""
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
        checkpoint: a folder that butfor train wrote; it knows its graph.
        published: weights that the paper's authors published (.npz).
        model: a model of your own, as package.module:factory; called without arguments, the factory returns
            a torch.nn.Module. The current folder can be imported from.
        weights: the weights of your own model (.safetensors).
        graph: tree-cycles, tree-grid, ba-shapes or ba-2motifs; a file (.npz, .csv, .parquet, .pt); or a folder
            of a Planetoid dataset or TUDataset. Not needed with a checkpoint.
        options: how the graph is read.
    """

    checkpoint: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    published: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    model: Annotated[str | None, Parameter(group=MODEL_GROUP)] = None
    weights: Annotated[Path | None, Parameter(group=MODEL_GROUP)] = None
    graph: Annotated[str | None, Parameter(group=GRAPH_GROUP)] = None
    options: GraphOptions = GraphOptions()

    @property
    def names_model(self) -> bool:
        """Whether a model is named."""
        return self.checkpoint is not None or self.published is not None or self.model is not None

    def read(self) -> Subject:
        """The model, in evaluation mode, and the graphs.

        Raises:
            InputError: too little or too much is given.
            ModelError, GraphError: what is given cannot be used.
        """
        named = [name for name in ("checkpoint", "published", "model") if getattr(self, name) is not None]
        if len(named) != 1:
            given = " and ".join(f"--{name}" for name in named) + " are both given" if named else "none is given"
            raise InputError(
                f"one model is needed and {given}: --checkpoint FOLDER, --published FILE or --model MODULE:FACTORY"
            )
        if self.weights is not None and self.model is None:
            raise InputError(f"--weights goes with --model, not with --{named[0]}")
        if self.checkpoint is not None:
            return self._from_checkpoint(self.checkpoint)
        if self.graph is None:
            raise InputError(f"--{named[0]} needs a graph: give --graph")
        model = self._published(self.published) if self.published is not None else self._own(str(self.model))
        return Subject(model, read_graphs(self.graph, self.options)[0])

    def _from_checkpoint(self, folder: Path) -> Subject:
        from butfor.models import load_checkpoint

        model, info = load_checkpoint(folder)
        if self.graph is not None:
            # Another graph on purpose; whether the model fits it is seen when it is run.
            return Subject(model, read_graphs(self.graph, self.options)[0])
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
        return Subject(model, graphs, test)

    @staticmethod
    def _published(path: Path) -> "nn.Module":
        from butfor.models import load_published

        return load_published(path)

    def _own(self, name: str) -> "nn.Module":
        from torch import nn

        from butfor.models import load_weights

        model = _factory(name)
        if inspect.iscoroutine(model):
            model.close()  # else Python would complain that nobody waited for it
        if not isinstance(model, nn.Module):
            raise ModelError(f"{name} returned a {type(model).__name__}; it must return a torch.nn.Module")
        if self.weights is not None:
            load_weights(model, self.weights)
        return model.eval()


def _factory(name: str) -> object:
    """Call ``package.module:factory``."""
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise InputError(f"--model {name!r} must name a factory, such as my_models:gcn")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # whatever the user's module does when it is imported
        raise ModelError(f"cannot import {module_name} of --model {name}: {one_line(problem)}") from problem
    factory = vars(module).get(attribute)
    if factory is None:
        raise ModelError(f"--model {name}: {module_name} has no {attribute}")
    if not callable(factory):
        raise ModelError(
            f"--model {name}: {attribute} is a {type(factory).__name__}, not a function that returns a model"
        )
    try:
        return factory()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # whatever the user's factory does
        raise ModelError(f"--model {name} failed: {one_line(problem)}") from problem
