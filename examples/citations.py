"""What would have to change for this paper to be filed under another subject?

    python examples/citations.py [folder of Cora]

A two-layer GCN files papers by their words and citations. For some papers we ask for the smallest change that makes it
file them under another subject: by removing citations, by adding citations, by changing words of the paper itself, and
by all of these. Without Cora, a small made-up library is used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import to_undirected

import butfor

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "planetoid" / "Cora"

SPACES = {
    "citations taken away": butfor.EditSpace(),
    "citations added": butfor.EditSpace(delete=False, add=butfor.Within(hops=2, most=200)),
    "words of the paper": butfor.EditSpace(delete=False, features=butfor.Features()),
    "all of these": butfor.EditSpace(add=butfor.Within(hops=2, most=200), features=butfor.Features()),
}


def made_up(papers: int = 400, subjects: int = 4, words: int = 120) -> Data:
    """Papers that mostly cite their own subject and mostly use its words."""
    random = np.random.default_rng(0)
    subject = random.integers(subjects, size=papers)
    likely = np.where(subject[:, None] == np.arange(words) % subjects, 0.12, 0.03)
    pairs = random.integers(papers, size=(5 * papers, 2))
    same = subject[pairs[:, 0]] == subject[pairs[:, 1]]
    kept = pairs[(pairs[:, 0] != pairs[:, 1]) & (random.random(len(pairs)) < np.where(same, 0.8, 0.05))]
    train = torch.zeros(papers, dtype=torch.bool)
    train[:80] = True
    return Data(
        x=torch.from_numpy((random.random((papers, words)) < likely).astype(np.float32)),
        edge_index=to_undirected(torch.from_numpy(kept.T.copy()), num_nodes=papers),
        y=torch.from_numpy(subject),
        train_mask=train,
        test_mask=~train,
    )


def trained(data: Data) -> GCN:
    """The usual two-layer GCN."""
    torch.manual_seed(0)
    model = GCN(data.num_features, 16, num_layers=2, out_channels=int(data.y.max()) + 1, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(150):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)[data.train_mask]
        torch.nn.functional.cross_entropy(logits, data.y[data.train_mask]).backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    """Explain some papers with each kind of edit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=SHARED)
    options = parser.parse_args()
    data = butfor.datasets.load_graph(options.folder) if options.folder.exists() else made_up()
    model = trained(data)
    with torch.no_grad():
        right = (model(data.x, data.edge_index).argmax(1) == data.y)[data.test_mask].float().mean()
    papers = data.test_mask.nonzero().flatten()[:12]
    print(f"{data.num_nodes} papers, {right:.2f} of the test papers are filed right. {len(papers)} of them explained:")
    for name, space in SPACES.items():
        results = butfor.explain(model, data, papers, space=space)
        sizes = [result.size for result in results if result.found]
        proved = sum(result.status.value == "optimal" for result in results)
        print(f"\n{name}: {len(sizes)} found, {proved} proved smallest, {np.mean(sizes):.1f} changes on average")
        print(f"  {min((r for r in results if r.found), key=lambda result: result.size)}")


if __name__ == "__main__":
    main()
