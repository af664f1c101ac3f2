"""butfor inside PyG's own `Explainer`.

    python examples/pyg_explainer.py

It takes the same five lines as any of PyG's explainers. The mask is 1 on the edges to remove, so the explanation
subgraph is the edit, and the complement subgraph is the counterfactual graph.
"""

from __future__ import annotations

import torch
from torch_geometric.explain import Explainer

import butfor
from butfor.integrations.pyg import CounterfactualExplainer


def main() -> None:
    """Explain a node of a six-cycle."""
    data = butfor.datasets.tree_cycles(seed=7)
    model, _ = butfor.models.trained_gcn(data)

    explainer = Explainer(
        model,
        algorithm=CounterfactualExplainer(method=butfor.Exact()),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(data.x, data.edge_index, index=597)

    print(explanation)
    print(explanation.counterfactual)
    edit = explanation.get_explanation_subgraph()
    rest = explanation.get_complement_subgraph()
    print(f"the edit has {edit.edge_index.size(1)} columns, the counterfactual graph {rest.edge_index.size(1)}")
    with torch.no_grad():
        before = int(model(data.x, data.edge_index)[597].argmax())
        after = int(model(data.x, data.edge_index[:, explanation.edge_mask == 0])[597].argmax())
    print(f"class {before} before, class {after} without these edges")


if __name__ == "__main__":
    main()
