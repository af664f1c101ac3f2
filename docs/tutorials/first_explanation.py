# %% [markdown]
# # First explanation
#
# In five minutes: one prediction, the edges that decide it, a proof, and a check by hand.
#
# The example that comes with butfor is a small graph, a binary tree with six-cycles attached to it, and a GCN that
# tells the nodes of cycles ("motif") from those of the tree ("base"). It is the first experiment of the
# CF-GNNExplainer paper.

# %%
import butfor

model, data = butfor.example()
data

# %% [markdown]
# Node 605 belongs to a cycle, and the model says so. Why? Which edges would have to go for it to say something else?

# %%
cf = butfor.explain(model, data, 605)
print(cf)

# %% [markdown]
# That sentence is the explanation. A notebook also shows the picture:

# %%
cf

# %% [markdown]
# ## What is in it
#
# A result is plain data. The edits, the predictions before and after, and what is proved:

# %%
print("removed:", cf.removed_edges)
print("before: ", cf.before)
print("after:  ", cf.after)
print("status: ", cf.status)
print(cf.verdict)

# %% [markdown]
# The status `optimal` is a promise: no single edge of the neighbourhood changes this prediction. butfor has tried or
# ruled out every smaller set. [What is proved](../concepts/proofs.md) says what the promise rests on.
#
# ## Check it by hand
#
# Nothing here needs to be believed. Take the two edges out of the graph, in both directions, and run the model:

# %%
import torch

gone = {frozenset(edge) for edge in cf.removed_edges}
kept = torch.tensor([frozenset(edge) not in gone for edge in data.edge_index.T.tolist()])
with torch.no_grad():
    before = model(data.x, data.edge_index)[605].softmax(0)
    after = model(data.x, data.edge_index[:, kept])[605].softmax(0)
print("intact:", before)
print("edited:", after)
assert before.argmax() != after.argmax()

# %% [markdown]
# butfor does the same for every answer before you see it: the edits are made on the whole graph, and your own model is
# run on it.
#
# ## All the smallest answers
#
# Often there are several ways. `Exact`, the default method, finds all of them if asked, and says how many of them need
# each edge:

# %%
every = butfor.explain(model, data, 605, butfor.Exact(all_smallest=True))
for edits in (every.edits, *every.alternatives):
    print(" and ".join(f"{edit.source}–{edit.target}" for edit in edits))
print()
for edit, share in every.necessity:
    print(f"{edit.source}–{edit.target} is in {share:.0%} of them")

# %% [markdown]
# ## When there is no answer
#
# That nothing can be done is an answer too, and it can be proved. This untrained model does not let go of its
# prediction for node 6, whatever edges are deleted:

# %%
from butfor.testing import random_problem

other_model, other_data = random_problem(seed=2)
stubborn = butfor.explain(other_model, other_data, 6)
print(stubborn)
print(stubborn.verdict)

# %% [markdown]
# Deletions are only the default. With edges that may be added, too, there is a way:

# %%
print(butfor.explain(other_model, other_data, 6, space=butfor.EditSpace(add=butfor.Within(hops=2))))

# %% [markdown]
# Next: [your own model and graph](your_own.py).
