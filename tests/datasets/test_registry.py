"""Datasets and loaders from outside: registered by hand, and by a package that is installed beside butfor."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.data import Data

from butfor.datasets import GENERATORS, load_graph, load_graphs, register_dataset, register_loader, tree_cycles
from butfor.datasets.registry import DATASETS, LOADERS, Loader, NamedDataset, Registry, registry
from butfor.datasets.wording import expected_graphs, expected_tables
from butfor.errors import GraphError, InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test registers is gone after it."""
    monkeypatch.setattr(registry, "_datasets", dict(registry.datasets))
    monkeypatch.setattr(registry, "_loaders", list(registry.loaders))


def ring(nodes: int) -> Data:
    source = torch.arange(nodes)
    return Data(x=torch.ones(nodes, 2), edge_index=torch.stack([source, (source + 1) % nodes]))


def read_edges(path: Path) -> Data:
    edges = torch.tensor([[int(end) for end in line.split()] for line in path.read_text().splitlines()])
    return Data(x=torch.ones(int(edges.max()) + 1, 1), edge_index=edges.t())


# What is built in


def test_every_built_in_line_names_a_function_that_exists(tmp_path: Path) -> None:
    for dataset in DATASETS:
        graphs = dataset.graphs(3)
        assert all(isinstance(graph, Data) for graph in graphs)
        assert (len(graphs) > 1) == dataset.several
        assert dataset.description
    for loader in LOADERS:
        missing = tmp_path / f"missing{loader.suffix}" if loader.suffix else tmp_path / loader.marker.replace("*", "a")
        with pytest.raises(GraphError):
            loader.graphs(missing, missing if loader.node_table else None)


def test_generators_are_a_view_of_the_seeded_single_graphs() -> None:
    before = list(GENERATORS)
    assert before == [dataset.name for dataset in DATASETS if dataset.seeded and not dataset.several]
    assert {"tree-cycles", "tree-grid", "ba-shapes"} <= set(before)
    assert torch.equal(GENERATORS["tree-cycles"](4).edge_index, tree_cycles(4).edge_index)
    register_dataset("ring", ring, "a ring with as many nodes as the seed says")
    register_dataset("rings", lambda seed: [ring(seed), ring(seed + 1)], "two rings", several=True)
    register_dataset("triangle", lambda: ring(3), "always the same", seeded=False)
    assert list(GENERATORS) == [*before, "ring"]
    assert len(GENERATORS) == len(before) + 1
    assert GENERATORS["ring"](5).num_nodes == 5
    assert {"rings", "triangle", "ba-2motifs"}.isdisjoint(GENERATORS)
    with pytest.raises(KeyError, match="rings"):
        GENERATORS["rings"]


# Datasets


def test_a_dataset_may_be_given_by_address() -> None:
    register_dataset("again", "butfor.datasets.synthetic:tree_cycles", "the same once more")
    assert torch.equal(registry.datasets["again"].graph(2).edge_index, tree_cycles(2).edge_index)
    register_dataset("nowhere", "butfor.datasets.synthetic:no_such_function", "nothing")
    with pytest.raises(GraphError, match="the dataset nowhere failed with 2: AttributeError"):
        registry.datasets["nowhere"].graphs(2)


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (lambda seed: [], "^the dataset toy returned no graphs$"),
        (lambda seed: Data(x=torch.ones(2, 2)), "has no edge_index"),
        (lambda seed: "a graph", "not a str"),
        (lambda seed: 1 / seed, "^the dataset toy failed with 0: ZeroDivisionError"),
        (lambda seed: [ring(3), ring(4)], "^the dataset toy has 2 graphs, and one was expected$"),
    ],
)
def test_what_a_generator_from_outside_may_not_do(generator: object, message: str) -> None:
    register_dataset("toy", generator, "broken")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=message):
        registry.datasets["toy"].graph(0)


@pytest.mark.parametrize("name", ["", "two words", "a/b", "a\\b", "a\n"])
def test_names_that_no_dataset_can_have(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a dataset"):
        register_dataset(name, ring, "a ring")


def test_a_name_is_given_once() -> None:
    with pytest.raises(InputError, match="there is a dataset tree-cycles already"):
        register_dataset("tree-cycles", ring, "a ring")


# Loaders


def test_a_file_format_of_another_package(tmp_path: Path) -> None:
    path = tmp_path / "graph.edges"
    path.write_text("0 1\n1 2\n")
    last = [loader.suffix for loader in registry.loaders if loader.suffix][-1]
    tables = re.escape(expected_tables())
    with pytest.raises(GraphError, match=r"graph\.edges is of no known kind: expected \.npz"):
        load_graphs(path)
    register_loader(read_edges, suffix=".edges")
    assert load_graph(path).edge_index.tolist() == [[0, 1], [1, 2]]
    assert load_graph(path, undirected=True).edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    with pytest.raises(InputError, match=rf"nodes= goes with an edge list in {tables}, not with graph\.edges"):
        load_graph(path, nodes=path)
    path.write_text("0 one\n")
    with pytest.raises(GraphError, match=r"^the loader for \.edges failed with .*graph\.edges: ValueError: .*'one'$"):
        load_graph(path)
    assert f"{last}, .edges)" in expected_graphs()
    (tmp_path / "graph.txt").touch()
    with pytest.raises(GraphError, match=rf"expected .*{re.escape(last)}( \(with nodes=\))?, \.edges, or a folder"):
        load_graph(tmp_path / "graph.txt")


def test_an_edge_list_with_a_node_table(tmp_path: Path) -> None:
    def read(path: Path, nodes: Path) -> Data:
        data = read_edges(path)
        data.x = torch.tensor([[float(line)] for line in nodes.read_text().split()])
        return data

    before = [loader.suffix for loader in registry.loaders if loader.node_table]
    register_loader(read, suffix=".edges", node_table=True)
    path, nodes = tmp_path / "graph.edges", tmp_path / "graph.nodes"
    path.write_text("0 1\n")
    nodes.write_text("5\n7\n")
    assert load_graph(path, nodes=nodes).x.tolist() == [[5], [7]]
    with pytest.raises(InputError, match=r"the edge list graph\.edges needs its node table"):
        load_graph(path)
    assert expected_tables() == f"{', '.join(before)} or .edges"


def test_a_folder_is_recognised_by_its_marker(tmp_path: Path) -> None:
    def read(path: Path) -> list[Data]:
        return [ring(int(size)) for size in path.read_text().split()]

    register_loader(read, marker="*.sizes", called="a toy folder")
    (tmp_path / "raw").mkdir()
    with pytest.raises(
        GraphError, match=r"a TUDataset \(\*_graph_indicator\.txt\).* or a toy folder \(\*\.sizes\), nei"
    ):
        load_graphs(tmp_path)
    (tmp_path / "raw" / "a.sizes").write_text("3 5")
    assert [graph.num_nodes for graph in load_graphs(tmp_path)] == [3, 5]
    (tmp_path / "raw" / "b.sizes").write_text("4")
    with pytest.raises(GraphError, match=r"raw holds more than one dataset: a\.sizes, b\.sizes"):
        load_graphs(tmp_path)
    (tmp_path / "c.sizes").write_text("6")  # the folder itself comes before its subfolder
    assert [graph.num_nodes for graph in load_graphs(tmp_path)] == [6]


def test_the_loader_that_was_registered_last_reads_a_path_first(tmp_path: Path) -> None:
    register_loader(lambda path: ring(3), suffix=".edges")
    register_loader(lambda path: ring(4), suffix=".my.edges")
    for name, nodes in (("a.edges", 3), ("a.my.edges", 4)):
        (tmp_path / name).touch()
        assert load_graph(tmp_path / name).num_nodes == nodes


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ({}, "needs a suffix for files or a marker for folders"),
        ({"suffix": ".edges", "marker": "*.edges"}, "and only one of them, not '.edges' and '\\*.edges'"),
        ({"suffix": "edges"}, "begins with a dot, and 'edges' does not"),
        ({"marker": "*.edges", "node_table": True}, "only a file can have a node table"),
        ({"suffix": ".npz"}, "there is a loader for .npz already"),
        ({"marker": "ind.*.graph"}, "there is a loader for ind.*.graph already"),
    ],
)
def test_loaders_that_are_refused(loader: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        register_loader(read_edges, **loader)  # type: ignore[arg-type]
    assert len(registry.loaders) == len(LOADERS)


# Plug-ins

TOY = """
import torch
from torch_geometric.data import Data

from butfor.datasets import register_dataset, register_loader


def rings(seed):
    source = torch.arange(6)
    data = read([(int(u), int(u + 1) % 6) for u in source] + [(0, 2 + seed)])
    return data


def read_edges(path):
    return read([tuple(map(int, line.split())) for line in path.read_text().splitlines()])


def read(pairs):
    both = torch.tensor([*pairs, *((v, u) for u, v in pairs)]).t()
    nodes = int(both.max()) + 1
    place = torch.arange(nodes)
    return Data(x=torch.eye(nodes), edge_index=both, y=place % 2, train_mask=place < 4, test_mask=place >= 4)


register_dataset("toy-rings", rings, "a ring of six nodes with a chord")
register_loader(read_edges, suffix=".edges")
"""

COMMANDS = """
import sys
from butfor.cli import main
for line in sys.stdin:
    print(">", main(line.split()), line.strip(), flush=True)
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder to import from, with a package that has an entry point for datasets."""
    info = tmp_path / "toy_graphs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-graphs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[butfor.datasets]\ntoy = toy_graphs\n")
    (tmp_path / "toy_graphs.py").write_text(TOY)
    return tmp_path


def run(toy: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run these commands one after another in one process that sees the toy package."""
    paths = os.pathsep.join(filter(None, [str(toy), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", COMMANDS],
        input="\n".join(lines),
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        cwd=toy,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_the_command_line_knows_an_installed_package(toy: Path) -> None:
    (toy / "mine.edges").write_text("0 1\n1 2\n2 3\n3 4\n4 5\n5 0\n")
    lines = [
        "datasets --help",
        "train --help",
        "explain --help",
        "datasets",
        "datasets toy-rings --seed 1",
        "datasets mine.edges",
        "train toy-rings --graph-seed 1 --epochs 2 --quiet --out named",
        "train mine.edges --epochs 2 --quiet --out file",
        "explain --checkpoint named --nodes 1 --quiet",
        "datasets nothing",
    ]
    done = run(toy, *lines)
    *parts, rest = done.stdout.split("> ")
    told = dict(zip(lines, parts, strict=True))
    codes = [part.split()[0] for part in [*parts[1:], rest]]
    assert codes == ["0"] * (len(lines) - 1) + ["2"], done.stderr
    for command in ("datasets", "train", "explain"):
        assert f"{DATASETS[-1].name} or toy-rings" in told[f"{command} --help"]
        assert ".edges" in told[f"{command} --help"]
    assert "a ring of six nodes with a chord" in told["datasets"]
    assert "14 columns, undirected" in told["datasets toy-rings --seed 1"]
    assert "12 columns, undirected" in told["datasets mine.edges"]
    assert "neither a file or folder nor a generated graph (tree-cycles, " in done.stderr
    assert f"{DATASETS[-1].name}, toy-rings)" in done.stderr
    named = json.loads((toy / "named" / "model.json").read_text())["data"]
    assert (named["name"], named["seed"]) == ("toy-rings", 1)


@pytest.mark.slow
def test_a_broken_package_is_named_and_does_no_harm(toy: Path) -> None:
    (toy / "toy_graphs.py").write_text("import a_package_that_is_missing\n")
    done = run(toy, "datasets --help", "datasets tree-cycles", "datasets toy-rings")
    assert "> 0 datasets tree-cycles" in done.stdout
    assert "> 2 datasets toy-rings" in done.stdout
    note = "note: cannot load toy_graphs of the package toy-graphs (butfor.datasets): ModuleNotFoundError: No module"
    first, second, error = done.stderr.splitlines()
    assert first == second
    assert first.startswith(note)
    assert error.startswith("error: toy-rings is neither a file or folder")


def test_plugins_are_imported_at_the_first_look_and_once(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (toy / "toy_graphs.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(toy)
    fresh = Registry("butfor.datasets")
    fresh.add_dataset(NamedDataset("ring", ring, "a ring"))
    fresh.add_loader(Loader(read_edges, suffix=".edges"))
    with pytest.warns(RuntimeWarning, match="of the package toy-graphs .*RuntimeError: broken") as caught:
        assert list(fresh.datasets) == [*(dataset.name for dataset in DATASETS), "ring"]
    assert len(caught) == 1
    assert len(fresh.loaders) == len(LOADERS) + 1
    assert len(fresh.failures) == 1
