"""Are the answers of `Exact` as small as those of another version of the code? Every target, one by one.

    python -m benchmarks.answers --save before.json       # with the code as it was
    python -m benchmarks.answers --compare before.json    # with the code as it is now

The paper's GCN on the published graphs of ../shared/data/reference (without these, on graphs made from seed 0); GCN,
GraphSAGE, GIN and GAT on test nodes of Cora that lie evenly among all, and GCN on the first of them too, which are
harder; molecules of Mutagenicity. Budgets are numbers of evaluations, so answers do not depend on the machine.

An answer is *worse* if it costs more than before, or if there was one before and now there is none.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from benchmarks.cf_gnn import DATASETS, load
from benchmarks.engine import MODELS
from benchmarks.exact import CORA, cora_model
from benchmarks.molecules import MUTAGENICITY
from benchmarks.proof_tables import EXACT, head, row, trained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.proof_tables import Results

    # The cost of each answer, None where there is none; by row, then by target.
    Costs = dict[str, dict[str, float | None]]

MOLECULES = 40
LONG = butfor.Budget(30_000)


def rows(count: int) -> Iterator[tuple[str, Results]]:
    """Each row with its results; ``count`` nodes of Cora in each."""
    for name in DATASETS:
        model, data = load(name, None)
        yield name, butfor.explain(model, data, data.test_mask, EXACT)
    if CORA.exists():
        model, data = cora_model()
        nodes = data.test_mask.nonzero().flatten()
        even = nodes[np.linspace(0, len(nodes) - 1, count).astype(int)]
        yield "Cora, GCN", butfor.explain(model, data, even, EXACT)
        yield "Cora, GCN, first nodes", butfor.explain(model, data, nodes[:count], EXACT)
        yield "Cora, GCN, first nodes, longer", butfor.explain(model, data, nodes[:count], EXACT, budget=LONG)
        for name in ("GraphSAGE", "GIN", "GAT"):
            yield f"Cora, {name}", butfor.explain(trained(MODELS[name], data, 64, 2), data, even, EXACT)
    if MUTAGENICITY.exists():
        graphs = butfor.datasets.load_mutagenicity(MUTAGENICITY)
        classifier, training = butfor.models.trained_graph_classifier(graphs, seed=0, conv="gin", readout="max")
        chosen = [graphs[number] for number in training.test[:MOLECULES]]
        yield "Mutagenicity, GIN", butfor.explain(classifier, chosen, method=EXACT)


def compare(costs: dict[str, float | None], before: dict[str, float | None]) -> list[object]:
    """How many answers there were and are; how many are better, the same and worse; and the mean cost of both."""
    found, then = ({key for key, cost in some.items() if cost is not None} for some in (costs, before))
    both = sorted(found & then)
    change = np.array([(costs[key] or 0) - (before[key] or 0) for key in both])
    better, worse = int((change < 0).sum()), int((change > 0).sum())
    means = [f"{np.mean([some[key] or 0 for key in both]):.3f}" if both else "–" for some in (before, costs)]
    return [
        *(len(then), len(found), better + len(found - then), len(both) - better - worse, worse + len(then - found)),
        *means,
    ]


def main() -> None:
    """Explain every target, then save what was found, compare it, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="write the costs of all answers to this file")
    parser.add_argument("--compare", type=Path, help="a file that another version wrote")
    parser.add_argument("--nodes", type=int, default=100, help="how many nodes of Cora in each row")
    options = parser.parse_args()
    torch.set_num_threads(1)
    before: Costs = json.loads(options.compare.read_text()) if options.compare else {}
    found: Costs = {}
    counted = ("answers before", "now", "better", "same", "worse", "mean cost before", "now")
    head("Answers, one thread", "row", "targets", *counted)
    for name, results in rows(options.nodes):
        found[name] = {str(result.target): result.cost if result.found else None for result in results}
        row(name, len(results), *compare(found[name], before.get(name, found[name])))
    if options.save:
        options.save.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
