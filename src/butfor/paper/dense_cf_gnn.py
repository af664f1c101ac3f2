"""A straightforward version of Algorithm 1 of the paper: one node at a time, dense N×N matrices, no early stopping.

It is the reference for `butfor.CFGNN`, which must return the same edges and is timed against it. It supports only the
paper's three-layer GCN, and takes O(K·N²) time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch_geometric.utils import k_hop_subgraph

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from butfor import CFGNN
    from butfor.models import PaperGCN

__all__ = ["dense_cf_gnn", "dense_subgraph"]


def dense_subgraph(data: Data, node: int, hops: int = 4) -> tuple[Tensor, Tensor, Tensor, int]:
    """The neighbourhood of a node: the ids of its nodes, dense adjacency, features, and the node's position in it."""
    nodes, edge_index, position, _ = k_hop_subgraph(
        node, hops, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
    )
    adjacency = torch.zeros(len(nodes), len(nodes))
    adjacency[edge_index[0], edge_index[1]] = 1.0
    return nodes, adjacency, data.x[nodes], int(position)


def _gcn(model: PaperGCN, x: Tensor, adjacency: Tensor, degrees: Tensor) -> Tensor:
    scale = (degrees + 1).pow(-0.5)
    a_hat = scale[:, None] * (adjacency + torch.eye(len(adjacency))) * scale[None, :]
    h1 = F.relu(a_hat @ (x @ model.gc1.lin.weight.T) + model.gc1.bias)
    h2 = F.relu(a_hat @ (h1 @ model.gc2.lin.weight.T) + model.gc2.bias)
    h3 = a_hat @ (h2 @ model.gc3.lin.weight.T) + model.gc3.bias
    logits: Tensor = model.lin(torch.cat([h1, h2, h3], dim=1))
    return logits


def dense_cf_gnn(model: PaperGCN, data: Data, node: int, before: int, method: CFGNN) -> set[tuple[int, int]] | None:
    """The edges that Algorithm 1 removes for ``node``, or None if it finds no counterfactual.

    Args:
        model: the paper's GCN.
        data: its graph.
        node: the node to explain.
        before: the class that the model predicts for it.
        method: the hyper-parameters.
    """
    nodes, adjacency, x, target = dense_subgraph(data, node)
    p_hat = torch.full_like(adjacency, method.start).requires_grad_()
    if method.optimizer == "sgd":
        nesterov = method.momentum > 0
        optimizer: torch.optim.Optimizer = torch.optim.SGD(
            [p_hat], lr=method.lr, momentum=method.momentum, nesterov=nesterov
        )
    else:
        kind = {"adam": torch.optim.Adam, "adadelta": torch.optim.Adadelta}[method.optimizer]
        optimizer = kind([p_hat], lr=method.lr)
    best, best_size = None, float("inf")
    for _ in range(method.epochs):
        soft = torch.sigmoid(p_hat)
        binary = (soft >= 0.5).float() * adjacency
        weighted = soft * adjacency
        degrees = (binary if method.degrees == "binary" else weighted).sum(1).detach()
        with torch.no_grad():
            now = int(_gcn(model, x, binary, binary.sum(1))[target].argmax())
        log_p = F.log_softmax(_gcn(model, x, weighted, degrees)[target], dim=0)[before]
        distance = (adjacency - weighted).sum() / 2
        loss = (now == before) * log_p + method.beta * (distance if method.distance_gradient else distance.detach())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        # An undirected edge has one parameter, so both of its entries in the matrix get the same gradient.
        assert p_hat.grad is not None
        p_hat.grad = p_hat.grad + p_hat.grad.T
        if method.clip is not None:
            norm = p_hat.grad.norm() / 2**0.5
            p_hat.grad *= (method.clip / (norm + 1e-6)).clamp(max=1.0)
        size = int((adjacency - binary).sum()) // 2
        if now != before and size < best_size and not (method.keep == "first" and best is not None):
            rows, columns = torch.nonzero(torch.triu(adjacency - binary), as_tuple=True)
            best = {(int(nodes[i]), int(nodes[j])) for i, j in zip(rows, columns, strict=True)}
            best_size = size
        optimizer.step()
    return best
