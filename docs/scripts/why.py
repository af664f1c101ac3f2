"""The same prediction explained twice: the picture of docs/why.md.

    python docs/scripts/why.py

On the left the weights that PyG's GNNExplainer gives to edges, on the right the counterfactual.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch_geometric.explain import Explainer, GNNExplainer

import butfor

if TYPE_CHECKING:
    from torch_geometric.data import Data

NODE = 605
PICTURE = Path(__file__).parents[1] / "images" / "why.png"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"


def main() -> None:
    """Explain, and draw both."""
    model, data = butfor.example()
    cf = butfor.explain(model, data, NODE)
    graph = cf.to_networkx()
    weights = masked(model, data)
    predicted = model(data.x, data.edge_index).argmax(1)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    places = nx.kamada_kawai_layout(graph)
    colours = [BLUE if predicted[node] == 1 else "white" for node in graph]
    heaviest = max(weights[frozenset(edge)] for edge in graph.edges)
    shares = {edge: weights[frozenset(edge)] / heaviest for edge in graph.edges}
    gone = {frozenset(edge) for edge in cf.removed_edges}
    for axes in (left, right):
        nx.draw_networkx_nodes(graph, places, node_color=colours, edgecolors=BLUE, node_size=210, ax=axes)
        nx.draw_networkx_nodes(
            graph, places, [NODE], node_color="none", edgecolors="black", linewidths=2.2, node_size=400, ax=axes
        )
        axes.set_axis_off()
        axes.margins(0.12)
    nx.draw_networkx_edges(
        graph, places, edgelist=list(shares), width=[0.5 + 5 * s for s in shares.values()], edge_color=GREY, ax=left
    )
    labels = {edge: f"{share:.2f}" for edge, share in shares.items()}
    nx.draw_networkx_edge_labels(graph, places, labels, font_size=8, ax=left)
    kept = [edge for edge in graph.edges if frozenset(edge) not in gone]
    nx.draw_networkx_edges(graph, places, edgelist=kept, edge_color=GREY, width=1.5, ax=right)
    removed = [edge for edge in graph.edges if frozenset(edge) in gone]
    nx.draw_networkx_edges(graph, places, edgelist=removed, edge_color=ORANGE, width=3, style="dashed", ax=right)
    left.set_title("GNNExplainer: a weight for every edge.\nWhich of them decide?", fontsize=11)
    right.set_title(
        f"butfor: without these {len(gone)} edges it would be {cf.after.name!r},\nand no smaller set does that",
        fontsize=11,
    )
    legend = "ring: the explained node   filled: predicted 'motif'   empty: predicted 'base'"
    figure.text(0.5, 0.02, legend, ha="center", fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


def masked(model: torch.nn.Module, data: Data) -> dict[frozenset[int], float]:
    """GNNExplainer's weight for every edge: the larger of its two directions."""
    torch.manual_seed(0)
    explainer = Explainer(
        model,
        algorithm=GNNExplainer(epochs=200),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(data.x, data.edge_index, index=NODE).edge_mask
    weights: dict[frozenset[int], float] = {}
    for edge, weight in zip(data.edge_index.T.tolist(), mask.tolist(), strict=True):
        key = frozenset(edge)
        weights[key] = max(weight, weights.get(key, 0.0))
    return weights


if __name__ == "__main__":
    main()
