"""Pictures of graphs of several types: shapes are types, colours classes, and edited edges name their relation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv, to_hetero

import butfor
from butfor import Deletion
from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.plotting.appearance import Appearance
from butfor.plotting.excerpt import Excerpt
from butfor.plotting.picture import draw
from butfor.plotting.style import styles_of_classes_of_a_type
from butfor.result.context import PlotContext
from pictures import assert_everything_is_inside, collection, count, legend, nodes, parts, reread, words


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def typed(data: HeteroData) -> torch.nn.Module:
    model = to_hetero(Layers(), data.metadata()).eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    return model


def library(*, both_ways: bool) -> HeteroData:
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


@pytest.mark.slow
@pytest.mark.parametrize("both_ways", [False, True])
def test_nodes_look_like_their_type(both_ways: bool) -> None:
    data = library(both_ways=both_ways)
    model = typed(data)
    results = butfor.explain(model, data, range(14), butfor.Greedy(), node_type="paper")
    found = [result for result in results if result.found]
    assert found
    for result in found[:4]:
        for figure in (result.plot(), reread(result).plot(data, model)):
            assert_everything_is_inside(figure)
            assert figure.legends[0].get_title().get_text() == "node type"
            assert legend(figure)[:5] == ["paper", "author", "venue", "", "predicted class"]
            classes = legend(figure)[5 : legend(figure).index("", 4)]
            assert classes == sorted(classes)
            assert result.before.name in classes
            assert set(classes) <= {"class 0", "class 1", "class 2"}
            assert legend(figure)[6 + len(classes)] == f"paper {result.target}, the target"
            assert len(nodes(figure)) == result.nodes
            assert count(figure, "removed-edges") == result.size
            assert count(figure, "removed-edges") + count(figure, "other-edges") == result.edges
            assert len({item.get_paths()[0].vertices.tobytes() for item in parts(figure, "nodes")}) == 3
            relations = [edit.relation[1] for edit in result.edits]
            assert sorted(words(figure, "edge-label")) == sorted(relations)
            assert "paper" in words(figure, "type")


def test_removed_edges_are_those_of_their_relation() -> None:
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(2, 3), torch.randn(2, 3)
    for name in ("writes", "reviews"):
        data["author", name, "paper"].edge_index = torch.tensor([[0, 1], [1, 1]])
        data["paper", f"rev_{name}", "author"].edge_index = torch.tensor([[1, 1], [0, 1]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 0]])
    result = butfor.explain(typed(data), data, 1, node_type="paper")
    look = Appearance(result._context)
    edited = replace(result, after=result.before, edits=(Deletion(0, 1, ("author", "reviews", "paper")),))
    excerpt = Excerpt.of(edited, look.graph, 200)
    (at,) = np.flatnonzero(excerpt.removed)
    assert look.graph.types.relations[excerpt.relation[at]] == ("author", "reviews", "paper")
    assert [look.graph.node_name(node) for node in excerpt.nodes[excerpt.pairs[at]]] == ["author 0", "paper 1"]
    figure = draw(edited, look)
    (gone,) = collection(figure, "removed-edges").get_segments()
    others = collection(figure, "other-edges").get_segments()
    assert min(np.abs(gone - line).max() for line in others) > 2, "the other relation runs beside it"
    # Cites is its own reverse: one line, without an arrow.
    assert len(others) == count(figure, "other-edges-heads") + 1
    with pytest.raises(InputError, match="0–0 is not in this graph"):
        draw(replace(edited, edits=(Deletion(0, 0, ("author", "writes", "paper")),)), look)


def named_library() -> tuple[HeteroData, torch.nn.Module]:
    torch.manual_seed(3)
    data = library(both_ways=True)
    data["paper"].class_names = ["physics", "biology", "economics"]
    data["paper"].node_ids = [f"P{number}" for number in range(14)]
    data["author"].node_ids = ["Ada", "Bob", "Cy", "Dan", "Eve", "Fay", "Guy", "Hal", "Ida"]
    return data, typed(data)


def test_names_and_classes_reach_sentences_and_pictures() -> None:
    data, model = named_library()
    with torch.no_grad():
        said = model(data.x_dict, data.edge_index_dict)["paper"].argmax(1).tolist()
    names = data["paper"].class_names
    space = butfor.EditSpace(
        add=butfor.Within(hops=2, most=40, cost=0.6),
        features=butfor.Features(values=[-2.0, 2.0], columns=[0], within=1, cost=1.2),
    )
    results = butfor.explain(model, data, range(14), butfor.Greedy(), node_type="paper", space=space)
    seen = set()
    for result in results:
        assert str(result).startswith(f"Paper P{result.target} is predicted '{names[said[result.target]]}'")
        assert butfor.Counterfactual.from_dict(result.to_dict()) == result
        for edit in result.edits:
            seen.add(edit.kind)
            for node, kind in zip(edit.nodes, edit.node_types, strict=True):
                own = str(node) if kind == "venue" else data[kind].node_ids[node]
                assert f"{kind} {own}" in str(result)
    assert seen >= {"add", "change"}
    for result in [result for result in results if result.found][:4]:
        figure = result.plot()
        assert_everything_is_inside(figure)
        assert result.before.name in legend(figure)
        assert f"paper P{result.target}, the target" in legend(figure)
        shown = words(figure, "id")
        assert f"P{result.target}" in shown
        relations = [edit.relation[1] for edit in result.edits if edit.kind != "change"]
        assert sorted(words(figure, "edge-label")) == sorted(relations)
        assert count(figure, "added-edges") == len(result.added_edges)


def test_colours_are_classes_of_the_predicted_type_and_grey_elsewhere() -> None:
    data, model = named_library()
    look = Appearance(butfor.explain(model, data, 0, butfor.Greedy(), node_type="paper")._context)
    every = np.arange(data.num_nodes)
    styles = look.styles(look.kinds(every))
    looks = [styles[int(kind)] for kind in look.kinds(every)]
    classes = look.context.classes[:14]
    assert [a[0] == b[0] for a in looks[:14] for b in looks[:14]] == [a == b for a in classes for b in classes]
    assert len({colour for colour, _, _ in looks[14:]}) == 1
    assert looks[14][0] not in {colour for colour, _, _ in looks[:14]}
    assert [len({shape for _, shape, _ in part}) for part in (looks[:14], looks[14:23], looks[23:])] == [1, 1, 1]
    many = styles_of_classes_of_a_type(np.arange(14), 0, 14)
    assert len(set(many.values())) == 14


class Pairs(torch.nn.Module):
    """Whether an author and a paper are linked; of the whole graph, whether it is large."""

    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        widths = {kind: data[kind].x.size(1) for kind in data.node_types}
        self.layer = HeteroConv({r: SAGEConv((widths[r[0]], widths[r[2]]), 6) for r in data.edge_types})

    def forward(self, x_dict: Any, edge_index_dict: Any, edge_label_index: Any = None) -> Any:
        z = self.layer(x_dict, edge_index_dict)
        if edge_label_index is None:
            return sum(value.mean() for value in z.values()).view(1)
        return (z["author"][edge_label_index[0]] * z["paper"][edge_label_index[1]]).sum(-1)


@pytest.mark.slow
def test_links_and_whole_graphs() -> None:
    data, _ = named_library()
    model = Pairs(data).eval()
    space = butfor.EditSpace(features=butfor.Features(values=[-2.0, 2.0]), delete=False)
    pairs = [butfor.Pair(author, paper) for author in range(3) for paper in range(4)]
    goal = butfor.Goal(threshold=0.0)
    results = butfor.explain(model, data, pairs, butfor.Greedy(), goal=goal, node_type=("author", "paper"), space=space)
    result = next(result for result in results if result.found)
    author, paper = result.target
    assert result.target_name == f"link author {data['author'].node_ids[author]} → paper P{paper}"
    for figure in (result.plot(), reread(result).plot(data, model)):
        assert_everything_is_inside(figure)
        assert {"ends of the link", "changed feature"} <= set(legend(figure))
        assert "predicted class" not in legend(figure)
    with torch.no_grad():
        value = float(model(data.x_dict, data.edge_index_dict))
    whole = butfor.explain(
        model, data, method=butfor.Greedy(), goal=butfor.Goal(threshold=value + 0.01), space=butfor.EditSpace()
    )
    assert whole.found
    assert whole.target_name == "graph 0"
    assert_everything_is_inside(whole.plot())
    assert_everything_is_inside(reread(whole).plot(data, model))


def test_the_legend_fits_however_many_types_and_classes_there_are(real: butfor.Counterfactual) -> None:
    data = HeteroData()
    kinds = [f"a_kind_of_thing_that_is_number_{number}" for number in range(20)]
    for kind in kinds:
        data[kind].x = torch.zeros(20 if kind == kinds[0] else 1, 1)
    for kind in kinds[1:]:
        data[kind, "to", kinds[0]].edge_index = torch.tensor([[0] * 20, list(range(20))])
    graph = Graph.of(data)
    classes = np.where(np.arange(graph.num_nodes) < 20, np.arange(graph.num_nodes), -1)
    look = Appearance(PlotContext(graph, classes, tuple(f"a class with a long name: {label}" for label in range(20))))
    edit = Deletion(0, 3, (kinds[19], "to", kinds[0]))
    result = replace(real, target=3, node_type=kinds[0], directed=True, edits=(edit,), hops=None, names=())
    figure = draw(result, look)
    assert_everything_is_inside(figure)
    entries = [entry.replace("\n", "") for entry in legend(figure)]
    # Of types and classes those of the edited edge come first; the rest is counted.
    assert any(entry.endswith("number_19") for entry in entries)
    assert any(entry.endswith("name: 3") for entry in entries)
    assert sum(entry.startswith("and ") for entry in entries) == 2
    assert entries[-2:] == ["removed edge", "other edge"]
