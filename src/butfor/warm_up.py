"""Compile the kernels now, rather than when the first node is explained.

    python -m butfor.warm_up

What is compiled is kept on disk, so this is done once on a machine; `make` does it when it installs.
"""

from __future__ import annotations

import numpy as np
from torch_geometric.nn import GraphConv

from butfor.session import Session
from butfor.testing import random_problem

__all__ = ["warm_up"]


def warm_up() -> None:
    """Ask each kernel one question about a small graph: those of GCN, and those of programs."""
    gcn, data = random_problem(seed=0)
    for model in (gcn, GraphConv(data.num_features, 3).eval()):
        problem = Session.of(model, data).problem(0)
        problem.ask([[0]])
        problem.gradient()
        problem.influence((), np.arange(len(problem.edits)), 2)


if __name__ == "__main__":
    warm_up()
