"""Which nodes can be the unknown test nodes of the paper? Those with which the published numbers come out.

    python -m benchmarks.unknown_nodes

Of the test nodes of the two published trees, 174 of 175 and 243 of 247 are known. The paper states how many
counterfactuals CF-GNN, 1HOP and RM-1HOP find over all test nodes, and their mean size to two digits. So the unknown
nodes must make up exactly what the known ones lack. This tries every choice of unknown nodes. Needs
../shared/data/reference.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import torch

import butfor
from benchmarks.cf_gnn import load
from butfor.paper import PAPER, paper_row

if TYPE_CHECKING:
    from butfor.methods import Method

SHOWN = 5


def sizes_of(session: butfor.Session, nodes: list[int], method: Method) -> dict[int, int | None]:
    """The size of each node's counterfactual; None if the method finds none."""
    return {node: result.size for node, result in zip(nodes, session.explain(nodes, method), strict=True)}


def main() -> None:
    """Print, for each tree, the choices with which all published numbers come out."""
    torch.set_num_threads(1)
    for name in ("tree_cycles", "tree_grid"):
        paper = PAPER[name.replace("_", "-")]
        model, data = load(name, None)
        session = butfor.prepare(model, data)
        known = data.test_mask.nonzero().flatten().tolist()
        others = (~data.test_mask).nonzero().flatten().tolist()
        missing = paper.statistics.test_nodes - len(known)
        candidates = set(others)
        conditions = []
        for method in (butfor.CFGNN.published(momentum=paper.momentum), butfor.KeepEgo(), butfor.RemoveEgo()):
            row = paper_row(paper, method.record())
            assert row is not None
            assert row.found is not None
            found = [size for size in sizes_of(session, known, method).values() if size is not None]
            lacking = row.found - len(found)
            # The mean has two digits, rounded or cut off, so the sum is known only up to a small interval.
            low, high = (row.found * (row.size[0] + error) - sum(found) for error in (-0.00501, 0.00999))
            sizes = sizes_of(session, others, method)
            print(
                f"{name}: {row.label} found {len(found)} of {len(known)} known nodes at {sum(found) / len(found):.2f}; "
                f"published {row.found} of {paper.statistics.test_nodes} at {row.size[0]:.2f}; "
                f"{lacking} unknown nodes with {max(low, 0):.1f} to {high:.1f} edges in all"
            )
            if lacking == 0:
                candidates -= {node for node, size in sizes.items() if size is not None}
            elif lacking == missing:
                candidates -= {node for node, size in sizes.items() if size is None}
            conditions.append((sizes, lacking, low, high))
        fits = []
        for choice in combinations(sorted(candidates), missing):
            for sizes, lacking, low, high in conditions:
                solved = [size for node in choice if (size := sizes[node]) is not None]
                if len(solved) != lacking or not low <= sum(solved) <= high:
                    break
            else:
                fits.append(choice)
        some = ", ".join(map(str, fits[:SHOWN])) + (", ..." if len(fits) > SHOWN else "")
        print(f"{name}: {len(candidates)} candidates; choices with which all numbers come out: {len(fits)} ({some})")


if __name__ == "__main__":
    main()
