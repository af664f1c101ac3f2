"""Why a mask is not a deletion: the class under PyG's edge mask against the class after the edges are gone.

    python -m benchmarks.masks                 # Cora, 60 test nodes for each model, about three minutes

Two-layer models trained on Cora. For each node, two sets of edges are masked and deleted: its counterfactual (by
`Greedy`), and as many edges drawn from those at the node or its neighbours. The mask is 0 on these edges and 1
elsewhere, set in the way PyG's explainers set it (`set_masks`). *differs* is the share of sets for which the masked
model predicts another class than the model on the graph without these edges.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

import butfor
from benchmarks.exact import CORA, fit
from butfor.testing import links

MODELS = {"GCN": GCN, "GAT": GAT, "GraphSAGE": GraphSAGE, "GIN": GIN}
NODES = 60


def main() -> None:
    """Print one row for each model."""
    if not CORA.exists():
        raise SystemExit(f"{CORA} is not there")
    torch.set_num_threads(1)
    data = butfor.datasets.load_graph(CORA)
    pairs = np.array(links(data))
    print(f"Cora, {NODES} test nodes\n")
    heads = f"{'accuracy':>8} {'counterfactuals':>16} {'differs':>8} {'random sets':>12} {'differs':>8} {'s':>5}"
    print(f"{'model':<10} {heads}")
    for name, kind in MODELS.items():
        start = time.perf_counter()
        torch.manual_seed(0)
        model = fit(kind(data.num_features, 16, num_layers=2, out_channels=7, dropout=0.5), data, epochs=100)
        with torch.no_grad():
            right = (model(data.x, data.edge_index).argmax(1) == data.y)[data.test_mask].float().mean()
        random = np.random.default_rng(0)
        found, drawn = [], []
        nodes = data.test_mask.nonzero().flatten()[:NODES]
        for result in butfor.explain(model, data, nodes, butfor.Greedy(), progress=True):
            if result.size is None:
                continue
            close = {result.target, *pairs[(pairs == result.target).any(axis=1)].ravel().tolist()}
            near = pairs[np.isin(pairs, list(close)).any(axis=1)]
            chosen = near[random.permutation(len(near))[: result.size]]
            found.append(_differs(model, data, result.target, result.removed_edges))
            drawn.append(_differs(model, data, result.target, [tuple(pair) for pair in chosen.tolist()]))
        seconds = time.perf_counter() - start
        print(
            f"{name:<10} {right:>8.2f} {len(found):>16} {np.mean(found):>8.0%} {len(drawn):>12} {np.mean(drawn):>8.0%} "
            f"{seconds:>5.0f}"
        )


def _differs(model: torch.nn.Module, data: object, node: int, removed: object) -> bool:
    """Whether masking these edges gives another class than deleting them."""
    gone = {pair for u, v in removed for pair in ((u, v), (v, u))}
    kept = torch.tensor([tuple(pair) not in gone for pair in data.edge_index.T.tolist()])
    with torch.no_grad():
        deleted = int(model(data.x, data.edge_index[:, kept])[node].argmax())
        set_masks(model, kept.float(), data.edge_index, apply_sigmoid=False)
        try:
            masked = int(model(data.x, data.edge_index)[node].argmax())
        finally:
            clear_masks(model)
    return masked != deleted


if __name__ == "__main__":
    main()
