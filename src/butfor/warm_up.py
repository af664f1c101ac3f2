"""Compile the kernels now, rather than when the first node is explained.

    python -m butfor.warm_up

What is compiled is kept on disk, so this is done once on a machine; `make` does it when it installs.
"""

from __future__ import annotations

from multiprocessing import get_context

import numpy as np
import torch
from torch_geometric.nn import GCN, GraphConv

from butfor.session import Session
from butfor.testing import random_problem

__all__ = ["warm_up"]

KINDS = ("gcn", "program")


def warm_up() -> None:
    """Compile the kernels of GCN and those of programs, side by side: each takes a minute or two."""
    with get_context("spawn").Pool(len(KINDS)) as pool:
        pool.map(compile_kernels, KINDS)


def compile_kernels(kind: str) -> None:
    """Ask each kernel of one kind a question about a small graph, in single and in double precision."""
    gcn, data = random_problem(seed=0)
    model = gcn if kind == "gcn" else GraphConv(data.num_features, 3).eval()
    for precision in (torch.float32, torch.float64):
        data.x = data.x.to(precision)
        problem = Session.of(model.to(precision), data).problem(0)
        edits = np.arange(len(problem.edits))
        problem.ask([[0]])
        problem.gradient()
        problem.influence((), edits, 2)
        # No bound is enough, so that those which are asked last are compiled too.
        problem.margin_bound((), edits, 2, np.inf)
        sieve = problem.sieve(edits, 2, np.inf, 0.0)
        if sieve is not None:
            sieve.next(1)
    if kind == "gcn":
        # Three layers on equal features have bounds of their own.
        data.x = torch.ones_like(data.x)
        deep = GCN(data.num_features, 4, num_layers=3, out_channels=3).to(data.x.dtype).eval()
        Session.of(deep, data).problem(0).influence((), edits, 2)


if __name__ == "__main__":
    warm_up()
