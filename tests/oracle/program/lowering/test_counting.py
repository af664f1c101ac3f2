"""Whose rows an index is about: known from the relation, never from how many rows there are.

Users and items are equally many, on the whole graph and within two hops of the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import GATConv, GCNConv, GraphConv, HeteroConv, SAGEConv
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.oracle import ProgramOracle
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors = dict[object, Tensor]

SIZE, TARGET = 60, 30
BUYS, BACK, KNOWS = ("user", "buys", "item"), ("item", "rev_buys", "user"), ("user", "knows", "user")


def shop(directed: bool = False, knows: bool = False) -> HeteroData:
    """A ring of users and items, cut beside the target; users may know the next but one."""
    torch.manual_seed(0)
    data, user = HeteroData(), torch.arange(SIZE)
    data["user"].x, data["item"].x = torch.randn(SIZE, 3), torch.randn(SIZE, 3)
    near, far = (torch.stack([user, (user + way) % SIZE]) for way in (0, 1))
    if directed:
        data[BUYS].edge_index = near[:, user != TARGET - 2]
        data[BACK].edge_index = torch.stack([user, (user + 1) % SIZE]).repeat(1, 2)
        data[BACK].edge_index[1, SIZE:] += 1
        data[BACK].edge_index %= SIZE
    else:
        data[BUYS].edge_index = torch.cat([near, far[:, user != TARGET - 1]], dim=1)
        data = ToUndirected()(data)
    if knows:
        data[KNOWS].edge_index = torch.stack([user, (user + 2) % SIZE])
    return data


def is_shown_local(model: nn.Module, data: HeteroData, hops: int) -> bool:
    """Whether the program shows that the neighbourhood of the target is enough."""
    session = Session.of(model.eval(), data, node_type="user")
    edits = session.rules.edits(session.graph.neighbourhood(TARGET, hops))
    nodes = edits.neighbourhood.nodes
    assert len(nodes) < SIZE
    if hops == 2 and KNOWS not in data.edge_types:
        assert (nodes < SIZE).sum() == (nodes >= SIZE).sum()
    return ProgramOracle(ModelOracle(session.predictor)).proves_locality(edits)


class Layers(nn.Module):
    """Two layers for each relation."""

    def __init__(self, layer: Callable[[], nn.Module], relations: list[tuple[str, str, str]]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(HeteroConv({one: layer() for one in relations}) for _ in range(2))

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        for layer in self.layers:
            x_dict = layer(x_dict, edge_index_dict)
        return x_dict["user"]


LAYERS = {
    "SAGE": lambda: SAGEConv((3, 3), 3),
    "GraphConv": lambda: GraphConv((3, 3), 3),
    "GAT": lambda: GATConv((3, 3), 3, add_self_loops=False),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_types_of_equal_size_are_told_apart(kind: str, directed: bool) -> None:
    torch.manual_seed(1)
    model, data = Layers(LAYERS[kind], [BUYS, BACK]), shop(directed)
    assert is_shown_local(model, data, hops=2)
    assert not is_shown_local(model, data, hops=1)
    result = butfor.explain(model, data, TARGET, node_type="user")
    assert result.hops is not None
    assert result.status in (butfor.Status.OPTIMAL, butfor.Status.IMPOSSIBLE)


def test_a_type_that_has_no_node_nearby() -> None:
    """Attention does less where a relation has no edges; that must not look like another model."""
    torch.manual_seed(1)
    data, makes = shop(), ("maker", "makes", "item")
    data["maker"].x = torch.randn(3, 3)
    data[makes].edge_index = torch.arange(3).repeat(2, 1)
    data = ToUndirected()(data)
    model = Layers(LAYERS["GAT"], data.edge_types)
    assert is_shown_local(model, data, hops=2)
    assert not is_shown_local(model, data, hops=1)


def test_self_loops_of_one_type() -> None:
    class Knowing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = GCNConv(3, 2)

        def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
            return self.layer(x_dict["user"], edge_index_dict[KNOWS])

    # GCN divides by the degrees of both ends.
    assert is_shown_local(Knowing(), shop(knows=True), hops=2)
    assert not is_shown_local(Knowing(), shop(knows=True), hops=1)


class ByHand(nn.Module):
    """What users hear along `BACK`, and something wrong."""

    def __init__(self, wrong: Callable[[Tensors, Tensors], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.head, self.wrong = nn.Linear(3, 2), wrong

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        source, target = edge_index_dict[BACK]
        heard = torch.zeros_like(x_dict["user"]).index_add(0, target, x_dict["item"][source])
        return self.head(heard + self.wrong(x_dict, edge_index_dict))


def nothing(x: Tensors, _: Tensors) -> Tensor:
    return x["user"]


def the_item_of_the_same_number(x: Tensors, _: Tensors) -> Tensor:
    return x["item"]


def users_by_numbers_of_items(x: Tensors, edges: Tensors) -> Tensor:
    source, target = edges[BACK]
    return torch.zeros_like(x["user"]).index_add(0, target, x["user"][source])


def messages_to_numbers_of_items(x: Tensors, edges: Tensors) -> Tensor:
    source, target = edges[BACK]
    return torch.zeros_like(x["user"]).index_add(0, source, x["user"][target])


def two_relations_in_one_index(x: Tensors, edges: Tensors) -> Tensor:
    both = torch.cat([edges[BACK], edges[BUYS]], dim=1)
    return torch.zeros_like(x["user"]).index_add(0, both[1], x["item"][both[0]])


def loops_between_two_types(x: Tensors, edges: Tensors) -> Tensor:
    every = torch.arange(len(x["user"]))
    source, target = (torch.cat([end, every]) for end in edges[BACK])
    return torch.zeros_like(x["user"]).index_add(0, target, x["item"][source])


WRONG = (
    the_item_of_the_same_number, users_by_numbers_of_items, messages_to_numbers_of_items, two_relations_in_one_index,
    loops_between_two_types,
)  # fmt: skip


def test_a_model_by_hand_is_local() -> None:
    assert is_shown_local(ByHand(nothing), shop(), hops=2)


@pytest.mark.parametrize("wrong", WRONG)
def test_rows_of_another_type_are_not_local_though_there_are_as_many(wrong: Callable[..., Tensor]) -> None:
    assert not is_shown_local(ByHand(wrong), shop(), hops=2)


class Deep(nn.Module):
    """What items say of their users, who listen to other users before."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.head = nn.Linear(3, 2)

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        user, (knower, known) = x_dict["user"], edge_index_dict[KNOWS]
        heard = torch.zeros_like(user).index_add(0, known, user[knower])
        source, target = edge_index_dict[BUYS]
        item = torch.zeros_like(x_dict["item"]).index_add(0, target, heard[source])
        source, target = edge_index_dict[BACK]
        return self.head(torch.zeros_like(user).index_add(0, target, item[source]))


def test_a_relation_without_edges_nearby_may_have_some_outside() -> None:
    data = shop(knows=True)
    data[KNOWS].edge_index = data[KNOWS].edge_index[:, data[KNOWS].edge_index[1] != TARGET]
    assert is_shown_local(Deep(), data, hops=3)
    # None of those that the target's items hear of has an edge of the relation here: all lead to the rim.
    assert not is_shown_local(Deep(), data, hops=2)
