"""Rules for many edges at once: arrays and attribute names mean what a list of the same edges means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import butfor
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.graph.graph import Graph
from edge_lists import data_of
from typed_cases import CITES, IN, WRITES, library
from votes import Votes, star_of

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

    from butfor.edits.edits import Edits

REV_WRITES = ("paper", "rev_writes", "author")


def told(edits: Edits) -> list[tuple[Any, float]]:
    """What each edit does, and what it costs."""
    return [(edits.records([edit]), cost) for edit, cost in enumerate(edits.costs.tolist())]


def random_data(seed: int, directed: bool) -> tuple[Data, dict[tuple[int, int], float], list[tuple[int, int]]]:
    """A graph with copies and self-loops; the cost of each edge, and those that are frozen."""
    random = np.random.default_rng(seed)
    ends = [(int(u), int(v)) for u, v in random.integers(0, 7, (14, 2))]
    pairs = ends if directed else [*ends, *((v, u) for u, v in ends)]
    pairs = [pairs[i] for i in random.permutation(len(pairs))]
    name = (lambda u, v: (u, v)) if directed else (lambda u, v: (min(u, v), max(u, v)))
    edges = sorted({name(u, v) for u, v in pairs})
    cost = {edge: float(random.integers(1, 9)) / 4 for edge in edges}
    frozen = [edge for edge in edges if random.random() < 0.3]
    data = data_of(pairs, 7)
    data.price = torch.tensor([cost[name(u, v)] for u, v in pairs])
    data.is_frozen = torch.tensor([name(u, v) in frozen for u, v in pairs])
    plain = {edge: value for edge, value in cost.items() if edge[0] != edge[1]}
    return data, plain, [edge for edge in frozen if edge[0] != edge[1]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("directed", [False, True])
def test_arrays_and_names_mean_what_lists_mean(seed: int, directed: bool) -> None:
    data, cost, frozen = random_data(seed, directed)
    graph = Graph.of(data, directed)
    listed = EditSpace(costs=cost, protected=frozen)
    forms = [
        EditSpace(costs=data.price, protected=data.is_frozen),
        EditSpace(costs=data.price.double().numpy(), protected=data.is_frozen.numpy()),
        EditSpace(costs=data.price[:, None].bfloat16(), protected="is_frozen"),
        EditSpace(costs="price", protected=["is_frozen"]),
        EditSpace(costs="price", protected=["is_frozen", *frozen[:1]]),
        EditSpace.from_dict({"costs": "price", "protected": ["is_frozen", *map(list, frozen)]}),
        replace(EditSpace(costs="price", protected="is_frozen"), keep_connected=False),
    ]
    allowed = EditSpace(costs=cost, allowed=[edge for edge in cost if edge not in frozen])
    for node in range(3):
        near = graph.neighbourhood(node, 2)
        expected = told(Rules.of(listed, graph).edits(near))
        assert told(Rules.of(allowed, graph).edits(near)) == expected
        assert told(Rules.of(EditSpace(costs="price", allowed=~data.is_frozen), graph).edits(near)) == expected
        for space in forms:
            assert told(Rules.of(space, graph).edits(near)) == expected
    assert len({Rules.of(space, graph).fingerprint for space in forms[1:4]}) == 1
    other = Rules.of(EditSpace(costs=data.price + 1, protected="is_frozen"), graph).fingerprint
    assert other != Rules.of(forms[1], graph).fingerprint


def test_a_group_keeps_its_own_cost_and_stays_with_a_frozen_edge() -> None:
    data = star_of(-1.0, 2.0, 0.3, 0.3)
    data.price = torch.full((6,), 3.0)
    near = Graph.of(data).neighbourhood(0, 2)
    group = {"pair": [(0, 1), (0, 2)]}
    edits = Rules.of(EditSpace(costs="price", groups=group), Graph.of(data)).edits(near)
    assert edits.costs.tolist() == [1.0, 3.0]
    data.is_frozen = (data.edge_index == 2).any(0)
    edits = Rules.of(EditSpace(costs="price", groups=group, protected="is_frozen"), Graph.of(data)).edits(near)
    assert edits.costs.tolist() == [3.0]


def test_the_cheapest_answer_by_an_attribute() -> None:
    data = star_of(-1.0, 2.0, 2.0, 0.5)
    assert butfor.explain(Votes(), data, 0).cost == 2
    data.price = torch.tensor([5.0, 1.0, 1.0, 5.0, 1.0, 1.0])
    result = butfor.explain(Votes(), data, 0, space=EditSpace(costs="price"))
    assert result.cost == 6
    data.is_frozen = torch.tensor([True, False, False, True, False, False])
    frozen = butfor.explain(Votes(), data, 0, space=EditSpace(costs="price", protected="is_frozen"))
    assert frozen.status.value == "impossible"
    # The rule is what it was when it was made.
    prices = torch.ones(6)
    space = EditSpace(costs=prices)
    prices[:] = 7.0
    assert butfor.explain(Votes(), data, 0, space=space).cost == 2


def test_spaces_with_arrays_can_be_compared() -> None:
    mask = torch.tensor([True, False])
    assert EditSpace(protected=mask) == EditSpace(protected=mask.numpy())
    assert EditSpace(protected=mask) != EditSpace(protected=~mask)
    assert EditSpace(costs=torch.ones(2)) == EditSpace(costs=np.ones(2, np.float32))
    assert len({EditSpace(costs="price").cost_of[None], EditSpace(costs="price").cost_of[None]}) == 1
    assert EditSpace(costs=torch.ones(2)) != EditSpace(costs="price")
    assert not EditSpace(protected="frozen").is_default
    assert not EditSpace(costs=torch.ones(2)).is_default


META = torch.ones(4, device="meta")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"costs": "prise"}, r"^costs names the edge attribute 'prise', which this graph has not \(it has edge_attr,"),
        ({"protected": "prise"}, "^protected names the edge attribute 'prise'"),
        ({"allowed": ["prise"]}, "^allowed names the edge attribute 'prise'"),
        ({"costs": "edge_attr"}, r"^costs, the attribute 'edge_attr', has shape \(4, 2\); give one value for each"),
        ({"costs": torch.ones(3)}, "^costs has 3 values; give one for each of the 4 columns of edge_index$"),
        ({"costs": torch.ones(2, 4)}, r"^costs has shape \(2, 4\); give one value"),
        ({"protected": torch.ones(2, dtype=torch.bool)}, "^protected has 2 values; give one for each of the 4"),
        ({"protected": torch.tensor(True)}, r"^protected has shape \(\); give one value for each"),
        ({"costs": torch.tensor([1, np.nan, 1, np.nan])}, "^the cost of edge 1–2 is nan; give a positive number$"),
        ({"costs": torch.tensor([1.0, 1.0, -2.0, 1.0])}, r"^the cost of edge 0–1 is -2\.0; give a positive number$"),
        ({"costs": torch.tensor([1.0, np.inf, 1.0, 1.0])}, "^the cost of edge 1–2 is inf; give a positive number$"),
        ({"costs": np.zeros(4)}, r"^the cost of edge 0–1 is 0\.0; give a positive number$"),
        ({"costs": torch.ones(4, dtype=torch.bool)}, "^costs is of dtype bool; give a number for each edge$"),
        ({"costs": np.array(["a"] * 4)}, "^costs is of dtype <U1; give a number for each edge$"),
        ({"protected": torch.ones(4)}, "^protected is of dtype float32; give True or False for each edge"),
        ({"protected": "price"}, "^protected is of dtype float32; give True or False for each edge"),
        ({"costs": torch.tensor([1.0, 1.0, 2.0, 1.0])}, "^costs gives the edge 0–1 two values, 1.0 and 2.0; give all"),
        (
            {"protected": torch.tensor([True, False, False, False])},
            "^protected gives the edge 0–1 two values, True and False; give all columns of an edge the same, in both",
        ),
        ({"costs": META}, "^costs is a tensor whose values cannot be read; give a plain one$"),
        (
            {"costs": "title"},
            "^costs, the attribute 'title', is 'a graph'; give a tensor with one value for each edge$",
        ),
        ({"costs": {CITES: "price"}}, "^costs names the relation .*, but this graph has one type of edges$"),
        ({"costs": {CITES: 2.0}}, "^costs of .* is 2.0; give one value for each edge, or the name of an attribute$"),
    ],
)
def test_what_does_not_fit_is_named(rules: dict[str, Any], message: str) -> None:
    data = data_of([(0, 1), (1, 2), (1, 0), (2, 1)], 3)
    data.edge_attr, data.price, data.title = torch.ones(4, 2), torch.ones(4), "a graph"
    with pytest.raises(InputError, match=message) as caught:
        Rules.of(EditSpace(**rules), Graph.of(data))
    assert "\n" not in str(caught.value)


def test_what_is_said_of_self_loops_does_not_matter() -> None:
    data = data_of([(0, 1), (1, 0), (2, 2)], 3)
    space = EditSpace(costs=torch.tensor([2.0, 2.0, np.nan]), protected=torch.tensor([False, False, True]))
    edits = Rules.of(space, Graph.of(data)).edits(Graph.of(data).neighbourhood(0, 1))
    assert edits.costs.tolist() == [2.0]


# Graphs of several node types.


def typed() -> HeteroData:
    data = library(0)
    for number, relation in enumerate((WRITES, CITES, IN)):
        edges = data[relation].edge_index
        data[relation].price = (edges.sum(0) + 2.0) * (number + 1)
    return data


def test_rules_by_relation() -> None:
    data = typed()
    graph = Graph.of(data)
    near = graph.neighbourhood(3, None)  # the first paper

    def expected(*relations: tuple[str, str, str]) -> dict[Any, float]:
        return {
            (relation, u, v): data[relation].price[column].item()
            for relation in relations
            for column, (u, v) in enumerate(data[relation].edge_index.T.tolist())
        }

    def priced(space: EditSpace) -> dict[Any, float]:
        edits = Rules.of(space, graph).edits(near)
        return {record.edge: cost for (record,), cost in told(edits) if cost != 1}

    # The reverse relations have no prices: an edge's is that of its forward column.
    assert priced(EditSpace(costs="price")) == {
        edge: cost for edge, cost in expected(WRITES, CITES, IN).items() if edge[0] != CITES or edge[1] <= edge[2]
    }
    assert priced(EditSpace(costs={WRITES: "price"})) == expected(WRITES)
    assert priced(EditSpace(costs={WRITES: data[WRITES].price, IN: "price"})) == expected(WRITES, IN)
    first, *_ = expected(WRITES)
    assert priced(EditSpace(costs={WRITES: "price", first: 9.0})) == {**expected(WRITES), first: 9.0}
    every = len(Rules.of(EditSpace(), graph).edits(near))
    stays = torch.arange(data[WRITES].num_edges) == 0
    assert len(Rules.of(EditSpace(protected={WRITES: stays}), graph).edits(near)) == every - 1
    assert len(Rules.of(EditSpace(protected={REV_WRITES: stays}), graph).edits(near)) == every - 1
    only = EditSpace.from_dict({"costs": [[list(WRITES), "price"]]})
    assert priced(only) == expected(WRITES)
    assert Rules.of(only, graph).fingerprint == Rules.of(EditSpace(costs={WRITES: "price"}), graph).fingerprint


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"costs": "prise"}, "^costs names 'prise', which is no attribute of any relation of this graph$"),
        ({"costs": torch.ones(3)}, "^costs is an array; in a graph of several node types give one for each relation$"),
        ({"costs": {WRITES: "prise"}}, r"^costs of \('author', 'writes', 'paper'\) names the edge attribute 'prise'"),
        ({"costs": {("a", "b", "c"): "price"}}, r"^relation \('a', 'b', 'c'\) is not in this graph"),
        ({"costs": {WRITES: torch.ones(99)}}, r"^costs of \('author', 'writes', 'paper'\) has 99 values"),
        ({"protected": {"writes": "x"}}, "^'writes' is no relation; give its source type"),
        ({"costs": {WRITES: -torch.ones(4)}}, r"^the cost of edge \d–\d of \('author', 'writes', 'paper'\) is -1\.0"),
    ],
)
def test_what_does_not_fit_a_graph_of_several_types(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Rules.of(EditSpace(**rules), Graph.of(typed()))


def test_directions_of_a_relation_must_agree() -> None:
    data = typed()
    data[REV_WRITES].price = data[WRITES].price.clone()
    assert Rules.of(EditSpace(costs="price"), Graph.of(data)).prices is not None
    data[REV_WRITES].price[0] += 1
    with pytest.raises(
        InputError, match=r"^costs gives the edge \d–\d of \('author', .* two values, \S+ and \S+; give"
    ):
        Rules.of(EditSpace(costs="price"), Graph.of(data))
