"""Certificates: how many proved answers get one, whether the checker confirms them, and whether it refuses false ones.

    python -m benchmarks.proofs --parts certificates

The paper's GCN on all test nodes of both trees, with default settings; then models on Cora: GCN until there are 50
certificates of proved answers, the others on 20 nodes, with 30,000 evaluations and 5 seconds a node (and as long again
for writing a proof down). 50 certificates of each row are made false in ten ways, by turns: a leaf removed or put in, a
node of the tree changed, a branch cut, a claim that goes further, another goal, edit space or target, an edit left out;
or they are checked on another graph (one edge less) or another model (one weight changed). All have to be refused.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import load
from benchmarks.engine import MODELS
from benchmarks.exact import CORA, cora_model
from benchmarks.proof_tables import Asked, Clock, head, is_proved, middle, row, trained
from butfor.certificate.check import Refused
from butfor.certificate.record import BOUNDED, TRIED

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.certificate.record import Certificate

__all__ = ["certificates"]

CERTIFYING = butfor.Exact(threads=1, certificate=True)
SHORT = butfor.Budget(30_000, 5.0)

# Certificates of the GCN on Cora, nodes of the other models, and how many certificates of each row are made false.
CERTIFICATES, NODES, FALSE = 50, 20, 50


def certificates(count: int | None) -> None:
    """Proofs that were written down, checked, and made false."""
    head(
        "Certificates",
        *("model", "graph", "nodes asked", "proved", "of these with a certificate", "confirmed"),
        *("median (largest) bytes", "median (largest) CPU ms to check", "made false", "of these refused"),
    )
    for name in ("tree_cycles", "tree_grid"):
        model, data = load(name, None)
        certified("the paper's GCN", name, model, data, count, butfor.Budget())
    if CORA.exists():
        certified("GCN", "cora", *cora_model(), 10 * (count or 30), SHORT, count or CERTIFICATES)
        data = butfor.datasets.load_graph(CORA)
        for name in ("GraphSAGE", "GraphSAGE-max", "GIN"):
            certified(name, "cora", trained(MODELS[name], data, 64, 2), data, count or NODES, SHORT)


def certified(
    name: str,
    graph: str,
    model: torch.nn.Module,
    data: Data,
    count: int | None,
    budget: butfor.Budget,
    most: int | None = None,
) -> None:
    """One row: so many nodes, or until there are ``most`` certificates."""
    asked = Asked.of(model, data, count)
    session, results, written = asked.session, [], []
    for node in asked.nodes:
        results.append(session.explain(node, CERTIFYING, budget=budget))
        written += [results[-1]] if results[-1].certificate is not None and is_proved(results[-1]) else []
        if len(written) == most:
            break
    proofs = [result.certificate for result in written]
    seconds, refused = [], 0
    for proof in proofs:
        clock = Clock()
        refused += is_refused(session, proof)
        seconds.append(1e3 * clock.seconds)
    # Of an answer that is not optimal a claim that goes further may be true.
    optimal = [result.certificate for result in written if result.status.value == "optimal"]
    others = [butfor.prepare(other(model), data), butfor.prepare(model, smaller(data))]
    false = [is_false_refused(session, others, optimal[seed % len(optimal)], seed) for seed in range(FALSE)]
    sizes = [len(proof.to_json()) for proof in proofs]
    row(
        *(name, graph, len(results), sum(map(is_proved, results)), len(proofs), len(proofs) - refused),
        f"{middle(sizes, 0)} ({max(sizes):,})",
        f"{middle(seconds, 1)} ({max(seconds):,.0f})",
        *(len(false), sum(false)),
    )


def other(model: torch.nn.Module) -> torch.nn.Module:
    """The same model with one weight changed."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        next(changed.parameters()).view(-1)[0] += 1
    return changed


def smaller(data: Data) -> Data:
    """The same graph without its first edge."""
    source, target = data.edge_index
    first = ((source == source[0]) & (target == target[0])) | ((source == target[0]) & (target == source[0]))
    return data.clone().update({"edge_index": data.edge_index[:, ~first]})


def is_refused(session: butfor.Session, certificate: Certificate) -> bool:
    """Whether the checker finds something wrong with it."""
    try:
        session.check(certificate)
    except Refused:
        return True
    return False


def is_false_refused(
    session: butfor.Session, others: list[butfor.Session], certificate: Certificate, seed: int
) -> bool:
    """Whether a proof about an optimal answer is refused after one thing was changed, so that it is none."""
    kind = seed % 10
    return is_refused(others[kind - 8] if kind >= 8 else session, broken(certificate, kind, seed))


def broken(certificate: Certificate, kind: int, seed: int) -> Certificate:
    """A proof about an optimal answer with one thing changed so that it proves nothing, or something false."""
    random = np.random.default_rng(seed)
    tree = list(certificate.tree)
    leaves = [at for at, node in enumerate(tree) if node < 0]
    at = int(random.integers(len(tree)))
    match kind:
        case 0:
            del tree[leaves[int(random.integers(len(leaves)))]]
        case 1:
            tree.insert(at, TRIED)
        case 2:  # a branch is cut, sets are left out, or a branch breaks off
            tree[at] = 0 if tree[at] == TRIED else TRIED
        case 3:
            return replace(certificate, tree=(BOUNDED,), below=None)
        case 4:
            return replace(certificate, below=certificate.limit + 1 + int(random.integers(3)))
        case 5:
            return replace(certificate, **{("space_id", "goal")[int(random.integers(2))]: "another"})
        case 6:
            gone = int(random.integers(len(certificate.edits)))
            return replace(certificate, edits=certificate.edits[:gone] + certificate.edits[gone + 1 :])
        case 7:
            return replace(certificate, target=(int(certificate.target[0] == 0),))
    return replace(certificate, tree=tuple(tree))
