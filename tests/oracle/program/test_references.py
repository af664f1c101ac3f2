"""Models that do something else on graphs of other sizes, in ways that one neighbourhood does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.oracle import ProgramOracle
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE, TARGET, WIDTH = 40, 30, 4

# More rows than two neighbourhoods have, fewer than the graph.
FIRST = 25


def heard(h: Tensor, edge_index: Tensor, size: int) -> Tensor:
    """What arrives, added up."""
    return h.new_zeros(size, WIDTH).index_add(0, edge_index[1], h[edge_index[0]])


def is_shown_local(model: nn.Module, data: Any, target: int, hops: int, **more: Any) -> bool:
    """Whether the program shows that the neighbourhood is enough."""
    session = Session.of(model.eval(), data, **more)
    edits = session.rules.edits(session.graph.neighbourhood(target, hops))
    return ProgramOracle(ModelOracle(session.predictor)).proves_locality(edits)


# One type.


class Told(nn.Module):
    """What is done to what nodes hear is a function's to say."""

    def __init__(self, then: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.head, self.then = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3), then

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.head(self.then(heard(self.first(x), edge_index, len(x)), edge_index))


def ring() -> Data:
    torch.manual_seed(0)
    node = torch.arange(SIZE)
    ends = torch.stack([node, (node + 1) % SIZE])
    return Data(x=torch.randn(SIZE, WIDTH), edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def total(h: Tensor) -> Tensor:
    return h.sum(dim=1, keepdim=True).expand(-1, WIDTH)


def with_later_rows_gone(h: Tensor, _: Tensor) -> Tensor:
    h, later = h.clone(), torch.arange(min(FIRST, len(h)), len(h))
    h[later] = torch.zeros(len(later), WIDTH)
    return h


def with_first_rows_doubled(h: Tensor, _: Tensor) -> Tensor:
    h = h.clone()
    h[:FIRST].mul_(2.0)
    return h


def along_some_edges(h: Tensor, edge_index: Tensor) -> Tensor:
    return heard(h, edge_index.narrow(1, 0, min(SIZE, edge_index.size(1))), len(h))


BY_SIZE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "columns repeated": lambda h, _: h.repeat(1, 1 + len(h) % 3).view(len(h), -1, WIDTH).sum(dim=1),
    "another column": lambda h, _: h[:, len(h) % 3 : len(h) % 3 + 1].expand(-1, WIDTH),
    "more columns": lambda h, _: total(h[:, torch.arange(2 + len(h) % 3)]),
    "one column more often": lambda h, _: total(h[:, torch.zeros(2 + len(h) % 3, dtype=torch.long)]),
    "later rows written over": with_later_rows_gone,
    "the first rows written over": with_first_rows_doubled,
    "the first edges": along_some_edges,
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_what_depends_on_how_many_there_are_is_not_local(name: str) -> None:
    hops = 2 if name == "the first edges" else 1
    assert not is_shown_local(Told(BY_SIZE[name]), ring(), TARGET, hops)


@pytest.mark.parametrize("hops", [1, 2])
def test_what_does_not_is(hops: int) -> None:
    def twice(h: Tensor, edge_index: Tensor) -> Tensor:
        h = h.view(len(h), 2, -1).transpose(0, 1).reshape(-1, WIDTH // 2).view(2, len(h), -1).transpose(0, 1)
        return heard(h.reshape(-1, WIDTH), edge_index, len(h)) if hops == 2 else h.reshape(-1, WIDTH)

    assert is_shown_local(Told(twice), ring(), TARGET, hops)


# Several types.

BUYS, BACK, KNOWS, RARE = (
    ("user", "buys", "item"), ("item", "rev_buys", "user"), ("user", "knows", "user"), ("user", "rare", "user"),
)  # fmt: skip
USERS, ITEMS, USER = 30, 10, 16


def shop() -> HeteroData:
    """Each user buys one item, so that there is one in a small neighbourhood; three edges of a rare relation."""
    torch.manual_seed(1)
    data, user = HeteroData(), torch.arange(USERS)
    data["user"].x, data["item"].x = torch.randn(USERS, WIDTH), torch.randn(ITEMS, WIDTH)
    data[BUYS].edge_index = torch.stack([user, user * ITEMS // USERS])
    data[KNOWS].edge_index = torch.stack([user, (user + 1) % USERS])
    data = ToUndirected()(data)
    data[RARE].edge_index = torch.tensor([[USER + 1, USER - 1, USER + 2], [USER] * 3])
    return data


class Shop(nn.Module):
    """What users hear of items, and what a function makes of it."""

    def __init__(self, then: Callable[[Tensor, Tensor, Any], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.head, self.then = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3), then

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: Any) -> Tensor:
        user, item = self.first(x_dict["user"]), self.first(x_dict["item"])
        h = heard(item, edge_index_dict[BACK], len(user)) + 0 * heard(user, edge_index_dict[RARE], len(user))
        return self.head(user + self.then(h, item, edge_index_dict))


def all_edges_twice(h: Tensor, _: Tensor, edges: Any) -> Tensor:
    """Where two of them are gone."""
    known = edges[KNOWS]
    return h + heard(h, known.repeat(1, 1 + (known.size(1) == 2 * USERS - 4)), len(h))


def from_the_other_end(h: Tensor, _: Tensor, edges: Any) -> Tensor:
    """Nobody hears of others, where two edges are gone."""
    end = 1 if edges[KNOWS].size(1) == 2 * USERS - 4 else 0
    return h + torch.zeros_like(h).index_add(0, edges[KNOWS][1], h[edges[KNOWS].narrow(0, end, 1)[0]])


TYPED: dict[str, Callable[[Tensor, Tensor, Any], Tensor]] = {
    "the first item": lambda h, item, _: h + item[0],
    "the last item": lambda h, item, _: h + item[-1],
    "a number of the first item": lambda h, item, _: h + item[0, 0],
    "filled with that": lambda h, item, _: h + torch.zeros(len(h), 1).fill_(item[0, 0]),
    "the only item as one row": lambda h, item, _: h + item.reshape(-1)[:WIDTH],
    "a number of edges of one relation": lambda h, _, e: h * (2.0 if e[BUYS].size(1) == USERS - 2 else 1.0),
    "all edges twice": all_edges_twice,
    "from the other end": from_the_other_end,
}


@pytest.mark.parametrize("name", TYPED)
def test_what_depends_on_other_types_and_relations_is_not_local(name: str) -> None:
    hops = 2 if "edges" in name or "end" in name else 1
    assert not is_shown_local(Shop(TYPED[name]), shop(), USER, hops, node_type="user")


def test_what_depends_on_neither_is() -> None:
    assert is_shown_local(Shop(lambda h, _, __: h), shop(), USER, 1, node_type="user")


def test_nothing_is_claimed_of_a_model_that_asks_for_the_last_edge_of_a_relation() -> None:
    """Two edges change the class; that one is left is not among the sets that are drawn at random."""
    model = Shop(lambda h, _, edges: h * (-9.0 if edges[RARE].size(1) == 1 else 1.0)).eval()
    data = shop()
    with torch.no_grad():
        before = model(data.x_dict, data.edge_index_dict)[USER].argmax()
        fewer = {**data.edge_index_dict, RARE: data[RARE].edge_index[:, :1]}
        assert model(data.x_dict, fewer)[USER].argmax() != before
    method, space = butfor.Exact(threads=1), butfor.EditSpace(max_edits=3)
    found = butfor.explain(model, data, USER, method, node_type="user", space=space)
    assert found.status not in ("impossible", "optimal") or found.size == 2
