"""The datasets that have a name, and the files and folders that can be read: one line each.

Everything else is made from these lines: `load_graphs`, the command line, its help texts and the error messages. Other
packages add theirs with `register_dataset` and `register_loader`; the command line imports a package that declares an
entry point in the group ``butfor.datasets``:

    [project.entry-points."butfor.datasets"]
    toy = "toy_graphs"        # a module that registers its datasets and loaders when it is imported

torch and PyG take seconds to import and a help text should not wait for them. Therefore nothing heavy is imported here,
and a function may be given by its address, such as ``"butfor.datasets:tree_cycles"``: it is imported when it is called.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from butfor.boundary.plugins import load_plugins
from butfor.errors import ButforError, GraphError, InputError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch_geometric.data import Data

__all__ = [
    "GENERATORS",
    "Loader",
    "NamedDataset",
    "Registry",
    "register_dataset",
    "register_loader",
    "registry",
]

# Returns one graph or a list of graphs. As text, it is the address "package.module:function".
GraphFunction: TypeAlias = "Callable[..., Data | list[Data]] | str"


@dataclass(frozen=True)
class NamedDataset:
    """A dataset that is made by a function.

    Attributes:
        name: what it is called on the command line.
        generator: called with a seed, or without arguments if it is not `seeded`.
        description: what it is, in a few words.
        several: whether it is a list of graphs and not a single one.
        seeded: whether it depends on a seed.
    """

    name: str
    generator: GraphFunction
    description: str
    several: bool = False
    seeded: bool = True

    def graphs(self, seed: int = 0) -> list[Data]:
        """All graphs of the dataset, as this seed makes them."""
        return _call(self.generator, *([seed] if self.seeded else []))

    def graph(self, seed: int = 0) -> Data:
        """The only graph of the dataset, as this seed makes it.

        Raises:
            GraphError: if there are several.
        """
        graphs = self.graphs(seed)
        if len(graphs) != 1:
            raise GraphError(f"the dataset {self.name} has {len(graphs)} graphs, and one was expected")
        return graphs[0]


@dataclass(frozen=True)
class Loader:
    """A file format.

    A single file is recognised by its `suffix`. A folder is recognised by its `marker`: a file in it, or in its
    subfolder ``raw``, whose name matches this pattern.

    Attributes:
        reader: called with the path of the file, or of the folder's marker; with `node_table`, also with that path.
        suffix: how the file's name ends, such as ``".npz"``.
        marker: the pattern of the name of one file that only such a folder has, such as ``"*_graph_indicator.txt"``.
        called: what messages and help texts call such a folder, such as ``"a TUDataset"``. Empty for a special case of
            another format, which they do not mention.
        node_table: whether the file is an edge list that comes with a table of its nodes.
    """

    reader: GraphFunction
    suffix: str = ""
    marker: str = ""
    called: str = ""
    node_table: bool = False

    def graphs(self, path: Path, node_table: Path | None = None) -> list[Data]:
        """All graphs that are read from this path."""
        return _call(self.reader, *([path] if node_table is None else [path, node_table]))


DATASETS = (
    NamedDataset("tree-cycles", "butfor.datasets:tree_cycles", "a binary tree with 60 six-cycles, from the paper"),
    NamedDataset("tree-grid", "butfor.datasets:tree_grid", "a binary tree with 80 grids of 3×3, from the paper"),
    NamedDataset("ba-shapes", "butfor.datasets:ba_shapes", "a Barabási-Albert graph with 80 houses, from the paper"),
    NamedDataset("ba-2motifs", "butfor.datasets:ba_2motifs", "1000 graphs, each with a cycle or a house", several=True),
)

# The last loader that recognises a path reads it, so a special case comes after its general format.
LOADERS = (
    Loader("butfor.datasets.npz:read_npz", suffix=".npz"),
    Loader("butfor.datasets.tables:read_tables", suffix=".csv", node_table=True),
    Loader("butfor.datasets.tables:read_tables", suffix=".parquet", node_table=True),
    Loader("butfor.datasets.pt:read_pt", suffix=".pt"),
    Loader("butfor.datasets.planetoid:read_planetoid", marker="ind.*.graph", called="a Planetoid"),
    Loader("butfor.datasets.tu:read_tu", marker="*_graph_indicator.txt", called="a TUDataset"),
    Loader("butfor.datasets.disk:read_folder", marker="graph.json", called="a converted graph"),
    # These files do not say what their labels mean; this reader gives atoms, bonds and classes their names.
    Loader("butfor.datasets.mutagenicity:read_mutagenicity", marker="Mutagenicity_edge_gt.txt"),
)


class Registry:
    """Datasets and loaders: those of butfor, then those of the plug-ins in this group of entry points.

    The plug-ins are imported when something is looked up for the first time.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._datasets = {dataset.name: dataset for dataset in DATASETS}
        self._loaders = list(LOADERS)
        self._failures: Sequence[str] | None = None

    @property
    def datasets(self) -> Mapping[str, NamedDataset]:
        """The datasets by name, in the order in which they were registered."""
        self._load_plugins()
        return self._datasets

    @property
    def loaders(self) -> Sequence[Loader]:
        """The loaders, in the order in which they were registered."""
        self._load_plugins()
        return self._loaders

    @property
    def failures(self) -> Sequence[str]:
        """A sentence for each plug-in that could not be imported."""
        self._load_plugins()
        return self._failures or ()

    def add_dataset(self, dataset: NamedDataset) -> None:
        """Add a dataset.

        Raises:
            InputError: if its name is taken or cannot be one.
        """
        if not dataset.name or any(letter.isspace() or letter in "/\\" for letter in dataset.name):
            raise InputError(f"{dataset.name!r} cannot be the name of a dataset: use letters, digits and hyphens")
        if dataset.name in self._datasets:
            raise InputError(f"there is a dataset {dataset.name} already: give yours another name")
        self._datasets[dataset.name] = dataset

    def add_loader(self, loader: Loader) -> None:
        """Add a loader.

        Raises:
            InputError: if it is not clear what it reads, or another one reads the same already.
        """
        if bool(loader.suffix) == bool(loader.marker):
            raise InputError(
                f"a loader needs a suffix for files or a marker for folders, and only one of them, "
                f"not {loader.suffix!r} and {loader.marker!r}"
            )
        if loader.suffix and not loader.suffix.startswith("."):
            raise InputError(f"the suffix of a loader begins with a dot, and {loader.suffix!r} does not")
        if loader.node_table and not loader.suffix:
            raise InputError(f"only a file can have a node table, not a folder with {loader.marker}")
        for other in self._loaders:
            if (other.suffix, other.marker) == (loader.suffix, loader.marker):
                raise InputError(f"there is a loader for {loader.suffix or loader.marker} already")
        self._loaders.append(loader)

    def _load_plugins(self) -> None:
        if self._failures is None:
            self._failures = ()  # first, because a plug-in may look something up while it is being imported
            self._failures = load_plugins(self._group).failures
            for failure in self._failures:
                warnings.warn(failure, RuntimeWarning, stacklevel=4)


registry = Registry("butfor.datasets")


class _Generators(Mapping[str, "Callable[[int], Data]"]):
    """The generators of the named datasets that are a single graph and depend on a seed."""

    def __getitem__(self, name: str) -> Callable[[int], Data]:
        dataset = registry.datasets[name]
        if dataset.several or not dataset.seeded:
            raise KeyError(name)
        return dataset.graph

    def __iter__(self) -> Iterator[str]:
        return (name for name, dataset in registry.datasets.items() if dataset.seeded and not dataset.several)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"GENERATORS({', '.join(self)})"


GENERATORS: Mapping[str, Callable[[int], Data]] = _Generators()
"""By name, the generators of datasets that are a single graph: each takes a seed and returns the graph.

Examples:
    >>> import butfor
    >>> butfor.datasets.GENERATORS["tree-grid"](0).num_nodes
    1231
"""


def register_dataset(
    name: str, generator: GraphFunction, description: str, *, several: bool = False, seeded: bool = True
) -> None:
    """Give a dataset a name, by which every command finds it: ``butfor train NAME``.

    Args:
        name: what it is called on the command line.
        generator: called with a seed, or without arguments if it is not `seeded`; returns a PyG `Data`, or a list of
            them if there are `several`. Its address, such as ``"toy_graphs.rings:rings"``, does as well.
        description: what it is, in a few words.
        several: whether it is a list of graphs and not a single one.
        seeded: whether it depends on a seed.

    Raises:
        InputError: if the name is taken or cannot be one.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> import butfor
        >>> def ring(seed):
        ...     node = torch.arange(6)
        ...     edges = torch.stack([node, (node + 1) % 6])
        ...     return Data(x=torch.eye(6), edge_index=torch.cat([edges, edges.flip(0)], 1), y=node % 2)
        >>> butfor.datasets.register_dataset("toy-ring", ring, "a ring of six nodes")
        >>> butfor.datasets.GENERATORS["toy-ring"](0).num_edges
        12
    """
    registry.add_dataset(NamedDataset(name, _Checked(generator, f"the dataset {name}"), description, several, seeded))


def register_loader(
    reader: GraphFunction, *, suffix: str = "", marker: str = "", called: str = "", node_table: bool = False
) -> None:
    r"""Let `load_graph`, `load_graphs` and every command read one more file format.

    Of several loaders that recognise a path, the one that was registered last reads it.

    Args:
        reader: called with the `pathlib.Path` of the file; returns a PyG `Data` or a list of them. Its address, such as
            ``"toy_graphs.files:read_edges"``, does as well. For a folder it is called with the path of the marker.
        suffix: how the names of such files end, such as ``".edges"``.
        marker: instead of a suffix, the pattern of the name of one file that only a folder of this format has, in it or
            in its subfolder ``raw``: ``"*_graph_indicator.txt"``.
        called: what messages and help texts call such a folder, such as ``"a TUDataset"``. Leave it empty for a special
            case of another format.
        node_table: whether the file is an edge list that comes with a table of its nodes; `reader` is then also called
            with the path of that table.

    Raises:
        InputError: if it is not clear what the loader reads, or another one reads the same already.

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> import butfor
        >>> def read_edges(path):
        ...     pairs = [list(map(int, line.split())) for line in path.read_text().splitlines()]
        ...     edge_index = torch.tensor(pairs).T
        ...     return Data(x=torch.eye(int(edge_index.max()) + 1), edge_index=edge_index)
        >>> butfor.datasets.register_loader(read_edges, suffix=".edges")
        >>> _ = Path("mine.edges").write_text("0 1\n1 2\n2 0\n")
        >>> butfor.datasets.load_graph("mine.edges").num_nodes
        3
    """
    checked = _Checked(reader, f"the loader for {suffix or marker}")
    registry.add_loader(Loader(checked, suffix, marker, called, node_table))


@dataclass(frozen=True)
class _Checked:
    """A function from outside: its errors become one sentence, and the graphs that it returns are validated."""

    function: GraphFunction
    what: str

    def __call__(self, *arguments: Any) -> list[Data]:
        from butfor.graph.validate import validate

        try:
            graphs = _call(self.function, *arguments)
        except (ButforError, KeyboardInterrupt):
            raise
        except Exception as problem:
            given = " and ".join(str(argument) for argument in arguments)
            raise GraphError(f"{self.what} failed{f' with {given}' * bool(given)}: {one_line(problem)}") from problem
        if not graphs:
            raise GraphError(f"{self.what} returned no graphs")
        for graph in graphs:
            validate(graph)
        return graphs


def _call(function: GraphFunction, *arguments: Any) -> list[Data]:
    if isinstance(function, str):
        function = pkgutil.resolve_name(function)
    made = function(*arguments)  # type: ignore[operator]  # an address has become a function
    return list(made) if isinstance(made, (list, tuple)) else [made]
