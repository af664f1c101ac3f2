"""Which bonds make the model call this molecule a mutagen?

    python examples/molecule.py [folder of Mutagenicity] [--out pictures]

Trains a small GIN on Mutagenicity (briefly: fewer epochs than `benchmarks.graph_accuracy`), explains some mutagens by
the fewest bonds whose deletion changes the prediction, and draws one of them. Without the data, made-up molecules are
used: chains of carbon with a nitrogen and two oxygens, which are a nitro group in half of them. The picture is best if
RDKit is installed:

    pip install 'butfor[molecules]'
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

import butfor

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "tu" / "Mutagenicity"


def made_up(count: int = 300) -> list[Data]:
    """Chains of 6 to 10 carbons with a nitrogen and two oxygens: a nitro group, or each somewhere else on the chain."""
    random = np.random.default_rng(0)
    graphs = []
    for number in range(count):
        nitro = number % 2 == 0
        length = int(random.integers(6, 11))
        atoms = [*["C"] * length, "N", "O", "O"]
        bonds = [(i, i + 1, 0) for i in range(length - 1)]
        first, second, third = random.choice(length, size=3, replace=False).tolist()
        bonds += [(first, length, 0)]
        bonds += (
            [(length, length + 1, 1), (length, length + 2, 0)]
            if nitro
            else [(second, length + 1, 0), (third, length + 2, 0)]
        )
        ends = torch.tensor([(u, v) for u, v, _ in bonds]).T
        truth = torch.tensor([length in (u, v) and max(u, v) > length for u, v, _ in bonds])
        kinds = torch.eye(2)[[kind for *_, kind in bonds]]
        graphs.append(
            Data(
                x=torch.eye(3)[["CNO".index(symbol) for symbol in atoms]],
                edge_index=torch.cat([ends, ends.flip(0)], dim=1),
                edge_attr=torch.cat([kinds, kinds]),
                edge_motif=torch.cat([truth, truth]),
                y=torch.tensor([0 if nitro else 1]),
                atoms=atoms,
                node_ids=[f"{symbol}{i}" for i, symbol in enumerate(atoms)],
                bond_names=["single", "double"],
                class_names=["mutagen", "nonmutagen"],
            )
        )
    return graphs


def main() -> None:
    """Train, explain, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=SHARED)
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    options = parser.parse_args()
    there = options.folder.exists()
    graphs = butfor.datasets.load_mutagenicity(options.folder) if there else made_up()
    model, training = butfor.models.trained_graph_classifier(graphs, seed=0, epochs=10)
    what = "molecules of Mutagenicity" if there else "made-up molecules"
    print(f"{len(graphs)} {what}; {training.test_accuracy:.2f} of the test molecules are classed right.")

    with torch.no_grad():
        mutagens = [
            graphs[number]
            for number in training.test
            if int(graphs[number].y) == 0 and int(model(graphs[number].x, graphs[number].edge_index).argmax()) == 0
        ]
    results = butfor.explain(model, mutagens[:20])
    for result in results[:5]:
        print(f"\n{result}\n  {result.verdict}")
    proved = [result for result in results if result.status.value == "optimal"]
    sizes = [result.size for result in results if result.found]
    print(
        f"\n{len(sizes)} of {len(results)} explained, {len(proved)} proved smallest; "
        f"{np.mean(sizes):.2f} bonds on average."
    )
    drawn = max(proved, key=lambda result: (result.size == 2, -result.edges))
    options.out.mkdir(exist_ok=True)
    drawn.plot(path=options.out / "molecule.png")
    print(f"The picture of graph {drawn.target} is {options.out / 'molecule.png'}.")


if __name__ == "__main__":
    main()
