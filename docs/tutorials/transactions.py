# %% [markdown]
# # Rules, costs and wanted classes
#
# An account was flagged. The analyst wants to know which payments made it so, and not every payment can be doubted:
# salaries are beyond question, some payments belong together, and a large one is harder to explain away than a small
# one. The answer has to respect all of this.
#
# ## A bank
#
# 120 accounts. The first four are employers, who pay salaries; everybody pays somebody now and then; and in five rings
# of four accounts everybody pays large sums to everybody else.

# %%
import itertools

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import butfor

random = np.random.default_rng(3)
people = np.arange(4, 120)
payments = {(int(random.integers(4)), int(person)): (random.uniform(1_500, 6_000), "salary") for person in people}
for person in people.tolist():
    for other in random.choice(people[people != person], size=2, replace=False).tolist():
        payments[person, other] = (random.lognormal(6, 1), "payment")
rings = random.choice(people, size=(5, 4), replace=False).tolist()
for ring in rings:
    for sender, receiver in itertools.permutations(ring, 2):
        payments[sender, receiver] = (random.uniform(2_000, 6_000), "payment")

amount = torch.tensor([euros for euros, _ in payments.values()], dtype=torch.float)
data = Data(
    x=torch.stack([torch.ones(120), (torch.arange(120) < 4).float()], dim=1),
    edge_index=torch.tensor(list(payments)).T.contiguous(),
    edge_weight=amount / 10_000,
    amount=amount.round(),
    is_salary=torch.tensor([kind == "salary" for _, kind in payments.values()]),
    y=torch.zeros(120, dtype=torch.long).index_fill(0, torch.tensor(rings).flatten(), 1),
    class_names=["ordinary", "flagged"],
    node_ids=[f"acct-{number:03}" for number in range(120)],
)
data

# %% [markdown]
# The detector reads the amounts (`edge_weight`).


# %%
class Detector(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GraphConv(2, 16), GraphConv(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


torch.manual_seed(1)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(300):
    optimizer.zero_grad()
    logits = model(data.x, data.edge_index, data.edge_weight)
    torch.nn.functional.cross_entropy(logits, data.y, torch.tensor([1.0, 4.0])).backward()
    optimizer.step()
flagged = model.eval()(data.x, data.edge_index, data.edge_weight).argmax(1).nonzero().flatten()
print(f"{len(flagged)} accounts are flagged")

# %% [markdown]
# ## Without rules
#
# An account of the second ring. `edge_labels` writes an attribute of the edges into the picture.

# %%
account = rings[1][2]
cf = butfor.explain(model, data, account)
print(cf)
cf.plot(edge_labels="amount")

# %% [markdown]
# ## With rules
#
# - `protected`: salaries stay. What holds for many edges is the name of an attribute, or a tensor.
# - `costs`: doubting a payment costs its amount in thousands. So the answer is no longer the one with the fewest edges,
#   but the one with the smallest sum: three smaller payments instead of two large ones.
# - `max_edits`: an explanation with more than five parts is none.
# - the goal: the account must become *ordinary*, with a probability of at least 0.6. With two classes there is no other
#   anyway; with ten it matters.

# %%
data.doubt = (amount / 1_000).clamp(min=0.1).round(decimals=1)
space = butfor.EditSpace(protected="is_salary", costs="doubt", max_edits=5)
goal = butfor.Goal(wanted="ordinary", probability=0.6)
cf = butfor.explain(model, data, account, space=space, goal=goal)
print(cf)
print(cf.verdict)
print(f"cost: {cf.cost:.1f}, lower bound: {cf.lower_bound:.1f}")

# %% [markdown]
# ## Groups
#
# What two accounts of the ring pay to each other is doubted together or not at all: one edit of two edges, at cost 1
# unless `costs` says something else of the group by its name.

# %%
pairs = itertools.combinations(sorted(rings[1]), 2)
together = butfor.EditSpace(groups={f"between {u} and {v}": [(u, v), (v, u)] for u, v in pairs})
print(butfor.explain(model, data, account, space=together))

# %% [markdown]
# ## When rules forbid every answer
#
# If only salaries may be doubted, what then? The result says that nothing is possible, and `otherwise` names a second
# edit space in which to look for what would help.

# %%
only_salaries = butfor.EditSpace(allowed="is_salary")
cf = butfor.explain(model, data, account, space=only_salaries, otherwise=butfor.EditSpace())
print(cf.verdict)
print(cf.note)
print(cf.otherwise)

# %% [markdown]
# All rules, one by one: [say what may change](../how-to/rules.md). On the command line they are a JSON file,
# `--space rules.json`. `examples/transactions.py` in the repository is a longer version of this page.
#
# Next: [molecules](molecules.py).
