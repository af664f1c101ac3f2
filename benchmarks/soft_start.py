"""How far the soft forward pass, which gives CF-GNN its gradient, is from the model at the start of the search.

    python -m benchmarks.soft_start

At the start no edge is removed: P̂ = 1 everywhere, so every edge has weight σ(1) = 0.73. The table shows for how many
test nodes the soft pass predicts the same class as the model, and the mean probability that it gives to this class:
with degrees of the thresholded graph, as in the paper, and with degrees of σ(P̂), as in its code. Needs
../shared/data/reference.
"""

from __future__ import annotations

import torch

import butfor
from benchmarks.cf_gnn import DATASETS, load


def main() -> None:
    """Print one row for each dataset and kind of degrees."""
    torch.set_num_threads(1)
    print(f"{'dataset':<12} {'nodes':>5}  {'degrees of':<22} {'same class':>10} {'probability':>12}")
    for name in DATASETS:
        model, data = load(name, None)
        session = butfor.prepare(model, data)
        nodes = data.test_mask.nonzero().flatten().tolist()
        problems = [session.problem(node) for node in nodes]
        relaxation = problems[0].oracle.relax([problem.edits for problem in problems])
        assert relaxation is not None
        intact = torch.stack([problem.logits for problem in problems])
        before = intact.argmax(1)
        ones = torch.ones(sum(len(problem.edits) for problem in problems))
        soft = torch.sigmoid(ones)
        logits_by_pass = {
            "the intact model": intact,
            "thresholded (paper)": relaxation.logits(soft, ones),
            "σ(P̂) (its code)": relaxation.logits(soft, soft),
        }
        for label, logits in logits_by_pass.items():
            same = int((logits.argmax(1) == before).sum())
            probability = float(logits.softmax(1).gather(1, before[:, None]).mean())
            print(f"{name:<12} {len(nodes):>5}  {label:<22} {same:>10} {probability:>12.2f}")


if __name__ == "__main__":
    main()
