"""Pictures of links, whole graphs, molecules, graphs of several types, and of edits that are no deletions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCN, SAGEConv, global_mean_pool, to_hetero

import butfor
from butfor import Addition, Change, Counterfactual, Deletion, EditSpace, Features, Goal, Pair, Within
from butfor.errors import InputError
from butfor.plotting.excerpt import LINES, NOTED, View
from butfor.plotting.picture import draw
from butfor.plotting.style import COLOURS, NEW, REMOVED
from butfor.result.status import Status
from butfor.testing import random_problem
from test_picture import collection, count, everything_inside, ids, legend, nodes, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

ZERO = Goal(threshold=0.0)


class LinkModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn = GCN(4, 8, num_layers=2, out_channels=8)

    def forward(self, x: Any, edge_index: Any, edge_label_index: Any) -> Any:
        z = self.gnn(x, edge_index)
        source, target = edge_label_index
        return (z[source] * z[target]).sum(-1)


class GraphModel(torch.nn.Module):
    def __init__(self, features: int = 4) -> None:
        super().__init__()
        self.gnn = GCN(features, 8, num_layers=2, out_channels=8)
        self.last = torch.nn.Linear(8, 2)

    def forward(self, x: Any, edge_index: Any, batch: Any = None) -> Any:
        return self.last(global_mean_pool(self.gnn(x, edge_index).relu(), batch))


class TypedLayers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def reread(result: Counterfactual) -> Counterfactual:
    """What comes back from a file."""
    return Counterfactual.from_dict(result.to_dict())


def parts(figure: Figure, gid: str) -> list[Any]:
    return [item for item in figure.axes[0].collections if item.get_gid() == gid]


def words(figure: Figure, gid: str) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_gid() == gid]


def colour(item: Any) -> str:
    return matplotlib.colors.to_hex(item.get_color()[0])


def binary(seed: int, num_nodes: int = 20) -> tuple[torch.nn.Module, Data]:
    model, data = random_problem(seed, nodes=num_nodes, density=0.09)
    data.x = (data.x > 0).float()
    return model, data


def first_found(results: Iterator[Counterfactual]) -> Counterfactual:
    return next(result for result in results if result.found)


# Links.


@pytest.fixture(scope="module")
def link() -> tuple[LinkModel, Data, Counterfactual]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, data = LinkModel().eval(), random_problem(1, nodes=24, density=0.08)[1]
    pairs = (Pair(a, b) for a in range(24) for b in range(a + 1, 24) if [a, b] not in data.edge_index.T.tolist())
    method = butfor.Greedy()
    return model, data, first_found(butfor.explain(model, data, pair, method, goal=ZERO) for pair in pairs)


def test_a_link_has_two_ends_and_a_line_of_its_own(link: Any) -> None:
    model, data, result = link
    for figure in (result.plot(), reread(result).plot(data, model)):
        everything_inside(figure)
        assert texts(figure)[0] == str(result)
        assert len(collection(figure, "target").get_offsets()) == 2
        assert count(figure, "predicted-link") == 1
        assert count(figure, "removed-edges") == result.size
        assert count(figure, "other-edges") == result.edges - result.size
        assert len(nodes(figure)) == result.nodes
        assert set(map(str, result.target)) <= ids(figure)
        assert len(parts(figure, "nodes")) == 1, "nodes without classes look alike"
        assert legend(figure) == ["ends of the link", "predicted link", "removed edge", "other edge"]
        assert figure.legends[0].get_title().get_text() == ""


def test_the_predicted_link_beside_an_edge() -> None:
    model, data = LinkModel().eval(), random_problem(1, nodes=24, density=0.08)[1]
    pair = Pair(*data.edge_index[:, 0].tolist())
    figure = butfor.explain(model, data, pair, goal=ZERO).plot()
    (asked,) = collection(figure, "predicted-link").get_segments()
    others = collection(figure, "other-edges").get_segments() + collection(figure, "removed-edges").get_segments()
    gaps = [min(np.abs(asked - line).max(), np.abs(asked - line[::-1]).max()) for line in others]
    assert 3 < min(gaps) < 9, "side by side, not on top of each other"


def test_no_link_is_predicted(link: Any) -> None:
    _, _, result = link
    result = replace(result, before=replace(result.before, label=0, name="not linked"))
    assert "no link predicted" in legend(draw(result, result._scene))


def test_a_directed_link_has_an_arrow() -> None:
    model, data = LinkModel().eval(), random_problem(1, nodes=30, density=0.06, directed=True)[1]
    result = butfor.explain(model, data, Pair(0, 7), goal=ZERO)
    figure = result.plot()
    assert count(figure, "predicted-link-heads") == 1
    where = {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}
    tip = collection(figure, "predicted-link-heads").get_paths()[0].vertices[0]
    assert np.linalg.norm(tip - where["7"]) < np.linalg.norm(tip - where["0"])


def test_a_link_in_a_large_graph() -> None:
    model, data = LinkModel().eval(), random_problem(3, nodes=400, density=0.012)[1]
    result = butfor.explain(model, data, Pair(3, 9), butfor.Greedy(), goal=ZERO)
    figure = result.plot()
    assert len(nodes(figure)) == 200 < result.nodes
    assert len(collection(figure, "target").get_offsets()) == 2
    assert count(figure, "removed-edges") == result.size
    assert "nearest the target first" in texts(figure)[1]
    assert len(draw(result, result._scene, max_nodes=1).axes[0].collections) > 0


# Whole graphs.


def graph_result(num_nodes: int = 25, density: float = 0.1) -> tuple[GraphModel, list[Data], Counterfactual]:
    """Graph 1 of three, by a model that is not sure of it."""
    model = GraphModel().eval()
    graphs = [random_problem(seed, nodes=num_nodes, density=density)[1] for seed in range(3)]
    with torch.no_grad():
        model.last.bias -= model(graphs[1].x, graphs[1].edge_index)[0] - torch.tensor([0.001, 0.0])
    return model, graphs, butfor.explain(model, graphs, method=butfor.Greedy())[1]


def test_a_whole_graph_has_no_target() -> None:
    model, graphs, result = graph_result()
    assert result.found
    data = graphs[int(result.target)]
    for figure in (result.plot(), reread(result).plot(data, model)):
        everything_inside(figure)
        assert texts(figure)[0].startswith(f"Graph {result.target} is predicted")
        assert len(nodes(figure)) == data.num_nodes
        assert len(collection(figure, "target").get_offsets()) == 0
        assert count(figure, "removed-edges") == result.size
        assert legend(figure) == ["removed edge", "other edge"]


def test_one_graph_is_not_mistaken_for_another() -> None:
    model, graphs, result = graph_result()
    with pytest.raises(InputError, match=f"this is not graph {result.target} as it was explained"):
        reread(result).plot(graphs[int(result.target) - 1], model)


def test_a_large_graph_is_trimmed_around_its_edits() -> None:
    _, graphs, result = graph_result(num_nodes=260, density=0.012)
    edge = tuple(graphs[1].edge_index[:, -1].tolist())
    scene = result._scene
    plain = draw(replace(result, after=None, edits=()), scene)
    assert "Showing 200 of 260 nodes" in texts(plain)[1]
    assert "nearest the node with the most edges first" in texts(plain)[1]
    edited = replace(result, after=result.before, edits=(Deletion(*edge),))
    figure = draw(edited, scene, max_nodes=100)
    assert ids(figure) == set(map(str, edge))
    assert "nearest the edits first" in texts(figure)[1]
    assert len(nodes(figure)) == 100


# Molecules.


def molecule() -> Data:
    """Nitromethane, with its nitro group as ground truth."""
    bonds = [(0, 1, 0), (1, 2, 1), (1, 3, 0), (0, 4, 0), (0, 5, 0), (0, 6, 0)]
    both = bonds + [(v, u, kind) for u, v, kind in bonds]
    pairs, kinds = torch.tensor([pair[:2] for pair in both]).T, torch.tensor([kind for *_, kind in both])
    data = Data(x=torch.randn(7, 4), edge_index=pairs, edge_attr=torch.eye(3)[kinds])
    data.edge_motif = torch.isin(pairs, torch.tensor([1, 2, 3])).all(dim=0)
    data.atoms, data.bond_names = ["C", "N", "O", "O", "H", "H", "H"], ["single", "double", "triple"]
    data.node_ids = [f"{symbol}{number}" for number, symbol in enumerate(data.atoms)]
    return data


def test_a_molecule_is_drawn_as_one() -> None:
    model, data = GraphModel().eval(), molecule()
    result = butfor.explain(model, data)
    edits = (Deletion(0, 1), Addition(2, 3))
    found = {"status": Status.FOUND, "after": result.before, "cost": 2.0, "lower_bound": 1.0}
    edited = replace(result, edits=edits, names=((0, "C0"), (1, "N1")), **found)
    for figure in (replace(edited, _scene=result._scene).plot(), reread(edited).plot(data, model)):
        assert texts(figure) == [str(edited), edited.verdict]
        assert legend(figure) == ["removed bond", "added bond", "ground truth"]
        assert count(figure, "truth-bonds") == 2
        assert sorted(words(figure, "atom")) == ["N", "O", "O"]
        # The double bond is two lines; that of the removed bond stands apart.
        assert count(figure, "bonds") == 3


def test_a_molecule_with_changed_features_is_a_graph() -> None:
    model, data = GraphModel().eval(), molecule()
    result = butfor.explain(model, data)
    changed = replace(result, after=result.before, edits=(Change(1, 2, 0.0, 1.0),), _scene=result._scene)
    figure = changed.plot()
    assert ids(figure) == set(data.node_ids)
    assert legend(figure) == ["changed feature", "other edge"]


def test_what_is_no_molecule() -> None:
    model, data = GraphModel().eval(), molecule()
    data.atoms = data.atoms[:3]
    assert butfor.explain(model, data)._scene.molecule is None
    strange = molecule()
    strange.bond_names = ["single", "double", "hydrogen"]
    strange.edge_attr = torch.eye(3)[[2] * strange.edge_index.size(1)]
    del strange.edge_motif
    found = butfor.explain(model, strange)._scene.molecule
    assert {kind for *_, kind in found.bonds} == {""}
    assert found.truth == ()


# Additions and changes.


def test_added_edges_look_different() -> None:
    results = []
    for seed in range(4):
        model, data = binary(seed)
        space = EditSpace(delete=False, add=Within(2))
        results += [(model, data, result) for result in butfor.explain(model, data, range(6), space=space)]
    found = [(model, data, result) for model, data, result in results if result.found]
    assert found
    for model, data, result in found[:6]:
        for figure in (result.plot(), reread(result).plot(data, model)):
            everything_inside(figure)
            added = collection(figure, "added-edges")
            assert len(added.get_segments()) == len(result.added_edges) == result.size
            assert colour(added) == NEW != REMOVED
            assert NEW not in COLOURS
            assert added.get_linestyle()[0][1] is None, "a whole line"
            assert "added edge" in legend(figure)
            assert "removed edge" not in legend(figure)
            assert {str(node) for pair in result.added_edges for node in pair} <= ids(figure)
            where = {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}
            for line, pair in zip(added.get_segments(), result.added_edges, strict=True):
                for end, node in zip(line, pair, strict=True):
                    assert np.linalg.norm(end - where[str(node)]) < 25


def test_the_neighbourhood_with_far_additions() -> None:
    model, data = random_problem(2, nodes=300, density=0.008)
    far = [(3, node) for node in range(100, 140)]
    result = butfor.explain(model, data, 3, butfor.Greedy(), space=EditSpace(delete=False, add=far))
    assert result.found
    view = View.of(result, result._scene, 200)
    assert {node for pair in result.added_edges for node in pair} <= set(view.nodes.tolist())
    assert len(view.nodes) < result.nodes == view.all_nodes
    assert f"Showing {len(view.nodes)} of {result.nodes} nodes" in texts(result.plot())[1]
    joined = result._scene.graph.neighbourhood(3, 2, joins=[(0, u, v) for u, v in result.added_edges])
    assert set(view.nodes.tolist()) == set(joined.nodes.tolist())


def test_changed_features_are_marked_and_named() -> None:
    model, data = binary(0)
    results = butfor.explain(
        model, data, range(20), butfor.Greedy(), space=EditSpace(delete=False, features=Features(within=2))
    )
    result = first_found(iter(results))
    for figure in (result.plot(), reread(result).plot(data, model)):
        everything_inside(figure)
        stars = {change.node for change in result.changes}
        assert len(collection(figure, "changed").get_offsets()) == len(stars)
        said = "\n".join(words(figure, "note")).splitlines()
        assert sorted(said) == sorted(f"feature {c.feature}: {c.before:g} → {c.after:g}" for c in result.changes)
        assert "changed feature" in legend(figure)
        assert {str(node) for node in stars} <= ids(figure)


def test_not_too_many_words_about_features() -> None:
    model, data = binary(1)
    result = butfor.explain(model, data, 0, goal=Goal())
    changes = tuple(Change(node, feature, 0.0, 1.0) for node in range(20) for feature in range(4))
    scene = result._scene
    figure = draw(replace(result, after=result.before, edits=changes, nodes=20), scene)
    notes = words(figure, "note")
    assert len(collection(figure, "changed").get_offsets()) == 20
    assert len(notes) == NOTED
    assert {len(note.splitlines()) for note in notes} == {LINES}
    assert all(note.endswith("and 2 more") for note in notes)


def test_deletions_additions_and_changes_together() -> None:
    model, data = binary(5)
    target, other = data.edge_index[:, 0].tolist()
    result = butfor.explain(model, data, target)
    graph = result._scene.graph
    new = next(node for node in range(20) if node != target and not graph.has_edge(graph.edge_key((node, target))))
    edits = (Deletion(target, other), Addition(target, new), Change(target, 1, 0.0, 0.25))
    figure = draw(replace(result, after=result.before, edits=edits, nodes=20), result._scene)
    marks = [f"node {target}, the target", "removed edge", "added edge", "changed feature", "other edge"]
    assert legend(figure)[-5:] == marks
    assert words(figure, "note") == ["feature 1: 0 → 0.25"]
    rims = {matplotlib.colors.to_hex(edge) for item in parts(figure, "nodes") for edge in item.get_edgecolors()}
    assert {NEW, REMOVED} <= rims


def test_edits_of_another_graph() -> None:
    model, data = binary(5)
    result = butfor.explain(model, data, 3)
    there = tuple(data.edge_index[:, 0].tolist())
    for edit, message in (
        (Addition(*there), f"added edge {there[0]}–{there[1]} is in this graph already"),
        (Addition(3, 99), "node 99 is not in this graph"),
        (Change(99, 0, 0.0, 1.0), "node 99 is not in this graph"),
    ):
        with pytest.raises(InputError, match=message):
            draw(replace(result, after=result.before, edits=(edit,)), result._scene)


# Several node types.


def library(*, both_ways: bool = False) -> HeteroData:
    data = HeteroData()
    for kind, number, width in (("paper", 14, 4), ("author", 9, 5), ("venue", 3, 3)):
        data[kind].x = torch.randn(number, width)

    def pairs(first: int, second: int, number: int) -> Any:
        return torch.unique(torch.stack([torch.randint(first, (number,)), torch.randint(second, (number,))]), dim=1)

    data["author", "writes", "paper"].edge_index = pairs(9, 14, 20)
    data["author", "reviews", "paper"].edge_index = pairs(9, 14, 12)
    cites = pairs(14, 14, 12)
    data["paper", "cites", "paper"].edge_index = torch.cat([cites, cites.flip(0)], dim=1) if both_ways else cites
    data["paper", "in", "venue"].edge_index = torch.stack([torch.arange(14), torch.randint(3, (14,))])
    for source, name, target in list(data.edge_types):
        if source != target:
            data[target, f"rev_{name}", source].edge_index = data[source, name, target].edge_index.flip(0)
    return data


def typed(data: HeteroData) -> torch.nn.Module:
    model = to_hetero(TypedLayers(), data.metadata()).eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    return model


@pytest.mark.parametrize("both_ways", [False, True])
def test_node_types(both_ways: bool) -> None:
    data = library(both_ways=both_ways)
    model = typed(data)
    results = butfor.explain(model, data, range(14), butfor.Greedy(), node_type="paper")
    found = [result for result in results if result.found]
    assert found
    for result in found[:4]:
        for figure in (result.plot(), reread(result).plot(data, model)):
            everything_inside(figure)
            assert figure.legends[0].get_title().get_text() == "node type"
            assert legend(figure)[:4] == ["paper", "author", "venue", ""]
            assert legend(figure)[4] == f"paper {result.target}, the target"
            assert len(nodes(figure)) == result.nodes
            assert count(figure, "removed-edges") == result.size
            assert count(figure, "removed-edges") + count(figure, "other-edges") == result.edges
            assert len({item.get_paths()[0].vertices.tobytes() for item in parts(figure, "nodes")}) == 3
            relations = [edit.relation[1] for edit in result.edits]
            assert sorted(words(figure, "relation")) == sorted(relations)
            assert "paper" in words(figure, "type")


def test_removed_edges_are_those_of_their_relation() -> None:
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(2, 3), torch.randn(2, 3)
    for name in ("writes", "reviews"):
        data["author", name, "paper"].edge_index = torch.tensor([[0, 1], [1, 1]])
        data["paper", f"rev_{name}", "author"].edge_index = torch.tensor([[1, 1], [0, 1]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 0]])
    result = butfor.explain(typed(data), data, 1, node_type="paper")
    scene = result._scene
    edits = (Deletion(0, 1, ("author", "reviews", "paper")),)
    edited = replace(result, after=result.before, edits=edits)
    view = View.of(edited, scene, 200)
    (at,) = np.flatnonzero(view.removed)
    assert scene.graph.types.relations[view.relation[at]] == ("author", "reviews", "paper")
    assert [scene.called(node) for node in view.nodes[view.links[at]]] == ["author 0", "paper 1"]
    figure = draw(edited, scene)
    (gone,) = collection(figure, "removed-edges").get_segments()
    others = collection(figure, "other-edges").get_segments()
    assert min(np.abs(gone - line).max() for line in others) > 2, "the other relation runs beside it"
    # Cites is its own reverse: one line, without an arrow.
    assert len(others) == count(figure, "other-edges-heads") + 1
    with pytest.raises(InputError, match="0–0 is not in this graph"):
        draw(replace(edited, edits=(Deletion(0, 0, ("author", "writes", "paper")),)), scene)


def test_nodes_with_ids_of_their_own() -> None:
    model, data = random_problem(0, nodes=6, density=0.5)
    data.node_ids = ["ann", "bob", "cy", "dee", "eve", "fay"]
    result = first_found(iter(butfor.explain(model, data, range(6))))
    figure = result.plot()
    assert ids(figure) <= set(data.node_ids)
    assert f"node {data.node_ids[int(result.target)]}, the target" in legend(figure)
