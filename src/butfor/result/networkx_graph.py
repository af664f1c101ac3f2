"""A result as a networkx graph: the target's neighbourhood, with the edits as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports
from butfor.predict.class_names import class_name
from butfor.result.recovered import context_of
from butfor.result.surroundings import ADD, REMOVE, Surroundings

if TYPE_CHECKING:
    from torch import nn
    from torch_geometric.data import Data, HeteroData

    from butfor.graph.graph import Graph
    from butfor.result.context import PlotContext
    from butfor.result.counterfactual import Counterfactual

__all__ = ["to_networkx"]

# A node of a graph of one type is its number, in a graph of several types its type and its number within it.
Node = int | tuple[str, int]


def to_networkx(result: Counterfactual, data: Data | HeteroData | None, model: nn.Module | None) -> Any:
    """See `Counterfactual.to_networkx`.

    Raises:
        InputError: networkx is not installed, the result has lost its graph and none is given, or the graph is not the
            one the result is about.
    """
    with optional_imports():
        import networkx
    context = context_of(result, data, model, "to_networkx")
    graph = context.graph
    around = Surroundings.of(result, graph)
    if graph.types is not None:
        made = networkx.MultiDiGraph()
    else:
        made = networkx.DiGraph() if graph.directed else networkx.Graph()
    nodes = [_node(graph, number) for number in around.near.nodes.tolist()]
    made.add_nodes_from(zip(nodes, _node_attributes(result, context, around, nodes), strict=True))
    for (u, v), relation, role in zip(
        around.pairs.tolist(), around.relation.tolist(), around.role.tolist(), strict=True
    ):
        attributes = {"removed": role == REMOVE, "added": role == ADD}
        if graph.types is None:
            made.add_edge(nodes[u], nodes[v], **attributes)
            continue
        for source, target, number in ((u, v, relation), (v, u, graph.reverse[relation])):
            if number >= 0:
                name = graph.types.relations[number][1]
                made.add_edge(nodes[source], nodes[target], key=name, relation=name, **attributes)
    return made


def _node(graph: Graph, number: int) -> Node:
    return number if graph.types is None else graph.types.local(number)


def _node_attributes(
    result: Counterfactual, context: PlotContext, around: Surroundings, nodes: list[Node]
) -> list[dict[str, Any]]:
    """What is known of each node; what is not known is left out, since many formats have no word for nothing."""
    graph, near = context.graph, around.near
    found: list[dict[str, Any]] = []
    for node, number in zip(nodes, near.nodes.tolist(), strict=True):
        typed = {"type": node[0]} if isinstance(node, tuple) else {}
        found.append({"name": context.name_of(number), **typed, "target": False})
    for position in around.targets.tolist():
        found[position]["target"] = True
    for one, label, hops in zip(found, context.classes_of(near.nodes).tolist(), near.distance.tolist(), strict=True):
        if label >= 0:
            one["predicted"] = class_name(context.class_names, label)
        # A node that no message comes from has no distance, and a whole graph has no target.
        if len(around.targets) and hops < graph.num_nodes:
            one["hops"] = hops
    for change, position in zip(result.changes, around.changed.tolist(), strict=True):
        found[position].setdefault("changed", {})[change.feature] = (change.before, change.after)
    return found
