"""Why was this account flagged, and what would clear it?

    python examples/transactions.py

A made-up bank: 300 accounts, payments between them, and ten rings of accounts that pass large sums round. A GNN that
reads the amounts learns to tell the rings' accounts from the others. For some flagged accounts, an analyst asks for the
cheapest set of payments without which the model would call the account ordinary, where

- salaries are beyond doubt (`protected`),
- payments between the same two accounts are doubted together or not at all (`groups`),
- large payments are harder to doubt than small ones (`costs`),
- and the class must become "ordinary", with a probability of at least 0.6 (`Goal`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import butfor

ACCOUNTS, EMPLOYERS, RINGS, RING_SIZE = 300, 10, 10, 4


class Detector(torch.nn.Module):
    """Two rounds of message passing along payments, weighted by their amounts."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(features, 16), GraphConv(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor) -> torch.Tensor:
        """The logits of the two classes for every account."""
        hidden = self.first(x, edge_index, edge_weight).relu()
        return self.second(hidden, edge_index, edge_weight)


def bank(seed: int) -> tuple[Data, list[tuple[int, int]]]:
    """All payments as a directed graph, and the list of salaries among them."""
    random = np.random.default_rng(seed)
    salaries = [(int(random.integers(EMPLOYERS)), person) for person in range(EMPLOYERS, ACCOUNTS)]
    paid = {salary: random.uniform(1_500, 6_000) for salary in salaries}
    for person in range(EMPLOYERS, ACCOUNTS):
        for other in random.choice(np.arange(EMPLOYERS, ACCOUNTS), size=2, replace=False).tolist():
            if other != person:
                paid[person, other] = random.lognormal(6, 1)
    rings = random.choice(np.arange(EMPLOYERS, ACCOUNTS), size=(RINGS, RING_SIZE), replace=False)
    for ring in rings.tolist():
        for sender, receiver in zip(ring, ring[1:] + ring[:1], strict=True):
            paid[sender, receiver] = random.uniform(7_000, 9_900)
            if random.random() < 0.3:
                paid[receiver, sender] = random.uniform(500, 3_000)
    label = torch.zeros(ACCOUNTS, dtype=torch.long)
    label[rings.ravel()] = 1
    is_employer = (torch.arange(ACCOUNTS) < EMPLOYERS).float()
    data = Data(
        x=torch.stack([torch.ones(ACCOUNTS), is_employer], dim=1),
        edge_index=torch.tensor(list(paid)).T.contiguous(),
        edge_weight=torch.tensor(list(paid.values()), dtype=torch.float) / 10_000,
        y=label,
        node_ids=[f"acct-{number:03}" for number in range(ACCOUNTS)],
        class_names=["ordinary", "flagged"],
    )
    return data, salaries


def trained(data: Data) -> Detector:
    """The model, fitted to the labels."""
    torch.manual_seed(1)
    model = Detector(data.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index, data.edge_weight)
        torch.nn.functional.cross_entropy(logits, data.y, torch.tensor([1.0, 4.0])).backward()
        optimizer.step()
    return model.eval()


def rules(data: Data, salaries: list[tuple[int, int]]) -> butfor.EditSpace:
    """Which payments may be doubted, and at what cost."""
    amounts = dict(zip(map(tuple, data.edge_index.T.tolist()), (10_000 * data.edge_weight).tolist(), strict=True))
    price = {pair: 1.0 if amount < 1_000 else 2.0 if amount < 5_000 else 4.0 for pair, amount in amounts.items()}
    mutual = [pair for pair in amounts if pair[0] < pair[1] and pair[::-1] in amounts]
    return butfor.EditSpace(
        protected=salaries,
        groups={f"{u} with {v}": [(u, v), (v, u)] for u, v in mutual},
        costs={**price, **{f"{u} with {v}": price[u, v] + price[v, u] for u, v in mutual}},
        max_edits=5,
    )


def main() -> None:
    """Explain some flagged accounts."""
    data, salaries = bank(seed=3)
    model = trained(data)
    with torch.no_grad():
        predicted = model(data.x, data.edge_index, data.edge_weight).argmax(1)
    print(
        f"{int((predicted == data.y).sum())} of {ACCOUNTS} accounts are classed right; "
        f"{int(predicted.sum())} are flagged."
    )
    flagged = predicted.nonzero().flatten()[:8]
    goal = butfor.Goal(wanted=0, probability=0.6)
    for result in butfor.explain(model, data, flagged, space=rules(data, salaries), goal=goal):
        print(f"\n{result}")
        print(f"  {result.verdict} Cost: {result.cost:g}.")


if __name__ == "__main__":
    main()
