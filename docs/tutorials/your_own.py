# %% [markdown]
# # Your own model and graph
#
# butfor explains any model that PyG can run. A graph is a `torch_geometric` `Data`, a model a `torch.nn.Module` whose
# `forward` takes `x` and `edge_index`, and any other field of the graph that it names. There is nothing to register,
# subclass or wrap.
#
# ## The graph
#
# A small social network, Zachary's karate club: 34 members, and who is friends with whom. After a quarrel the club
# split in two, and the question is who went with whom.

# %%
import torch
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GCNConv

import butfor

data = KarateClub()[0]
data.y = (data.y == data.y[0]).long()
data.class_names = ["the president's", "the instructor's"]
data.node_ids = [f"member {number}" for number in range(1, 35)]
data

# %% [markdown]
# `class_names` and `node_ids` are optional. Where they are there, sentences and pictures use them.
#
# ## The model
#
# A class of our own, trained on the four members that the dataset suggests.


# %%
class Club(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(34, 16), GCNConv(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


torch.manual_seed(0)
model = Club()
train = data.train_mask
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-3)
for _ in range(100):
    optimizer.zero_grad()
    logits = model(data.x, data.edge_index)
    torch.nn.functional.cross_entropy(logits[train], data.y[train]).backward()
    optimizer.step()
model.eval()
right = model(data.x, data.edge_index).argmax(1) == data.y
print(f"{int(right[~train].sum())} of {int((~train).sum())} of the others are classed right")

# %% [markdown]
# ## Explain
#
# Which friendships decide on which side member 8 is seen?

# %%
cf = butfor.explain(model, data, 7)  # nodes are counted from 0
cf

# %% [markdown]
# The model is given back as it was: its weights, its mode, its hooks, also if something raises.
#
# ## Another question
#
# Each question is made of a **target** (a node, a link, a whole graph), an **edit space** (what may change, at what
# cost), a **goal** (what counts as another prediction) and a **budget** (what the search may spend). All have defaults.
# Here a friendship may also begin, and the other side must be at least 80 % likely:

# %%
butfor.explain(
    model,
    data,
    7,
    space=butfor.EditSpace(add=butfor.Within(hops=2)),
    goal=butfor.Goal(probability=0.8),
    budget=butfor.Budget(evaluations=20_000),
)

# %% [markdown]
# ## Many members
#
# Several targets give a list, which is a table in a notebook, and can become a data frame or a file. A mask or an index
# tensor will do as well as a range.

# %%
results = butfor.explain(model, data, ~train)
results

# %% [markdown]
# Whoever has many questions about one model and graph prepares them once: [sessions](../how-to/sessions.md).
#
# ## If the model is unusual
#
# - It takes more than `x` and `edge_index`: fields of the graph are passed to arguments of the same name
#   (`edge_weight`, `edge_attr`, `pos`, ...).
# - It returns one number, not a score for each class: `Goal(threshold=...)` says where another answer begins.
# - It returns probabilities: this is found out (`probabilities=` says it).
# - It predicts [links](../how-to/links.md), [whole graphs](molecules.py), or runs on a
#   [`HeteroData`](../how-to/typed-graphs.md): the target says so.
# - It cannot be traced: then the model itself is run on every edited graph that is tried, and the result's `note` says
#   which operation was in the way. [Layers of PyG](../results/layers.md) lists what can be.
#
# Next: [rules, costs and wanted classes](transactions.py).
