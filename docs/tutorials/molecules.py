# %% [markdown]
# # Molecules
#
# A whole graph as the target: which bonds make the model call this molecule a mutagen?
#
# The molecules here are made up, so that this page needs no download: chains of carbon with one nitrogen and two
# oxygens. In half of them these three form a nitro group, which is what makes them "mutagens"; in the others each is
# bound to the chain by itself. So it is the bonds that decide, not the atoms.
#
# With the Mutagenicity dataset it is the same code: `graphs = butfor.datasets.load_mutagenicity("folder")`, as in
# `examples/molecule.py`.

# %%
import numpy as np
import torch
from torch_geometric.data import Data

import butfor

ATOMS = ["C", "N", "O"]
random = np.random.default_rng(0)


def molecule(nitro: bool) -> Data:
    """A chain of carbons with a nitro group, or with its three atoms apart."""
    length = int(random.integers(6, 11))
    atoms = ["C"] * length + ["N", "O", "O"]
    first, second, third = random.choice(length, size=3, replace=False).tolist()
    n, o, other = length, length + 1, length + 2
    bonds = [(i, i + 1) for i in range(length - 1)] + [(first, n)]
    bonds += [(n, o), (n, other)] if nitro else [(second, o), (third, other)]
    ends = torch.tensor(bonds).T
    double = torch.tensor([pair == (n, o) for pair in bonds])
    return Data(
        x=torch.eye(3)[[ATOMS.index(atom) for atom in atoms]],
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_attr=torch.eye(2)[torch.cat([double, double]).long()],
        y=torch.tensor([0 if nitro else 1]),
        atoms=atoms,
        node_ids=[f"{atom}{number}" for number, atom in enumerate(atoms)],
        bond_names=["single", "double"],
        class_names=["mutagen", "nonmutagen"],
    )


graphs = [molecule(nitro=number % 2 == 0) for number in range(200)]
model, training = butfor.models.trained_graph_classifier(graphs, seed=0, epochs=20)
print(f"{training.test_accuracy:.2f} of the test molecules are classed right")

# %% [markdown]
# `trained_graph_classifier` is a GIN with pooling; any model that takes `x`, `edge_index` and `batch` will do. `atoms`
# and `bond_names` are only for pictures.
#
# ## One molecule
#
# No target is given, so the graph as a whole is explained.

# %%
cf = butfor.explain(model, graphs[0])
print(cf)
print(cf.verdict)
cf.plot()

# %% [markdown]
# The bonds that decide are those of the nitro group, as they should be: it is what the classes were made of.
#
# ## Several
#
# A list of graphs gives a result for each.

# %%
results = butfor.explain(model, graphs[:12:2])
results

# %% [markdown]
# ## Chemistry as rules
#
# Breaking the chain makes two molecules of one. `protected` keeps the bonds between carbons, or `allowed` names the
# only bonds that may go; here those at the nitrogen. And the other way round: which edits would make a mutagen of a
# harmless one? Deletions cannot, and that is proved; new bonds can.

# %%
at_nitrogen = [
    (u, v) for u, v in graphs[0].edge_index.T.tolist() if u < v and "N" in (graphs[0].atoms[u], graphs[0].atoms[v])
]
print(butfor.explain(model, graphs[0], space=butfor.EditSpace(allowed=at_nitrogen)))
print(butfor.explain(model, graphs[1]))
n, o, other = range(graphs[1].num_nodes - 3, graphs[1].num_nodes)
new_bonds = butfor.EditSpace(add=[(n, o), (n, other)], carries={"edge_attr": [1.0, 0.0]})
print(butfor.explain(model, graphs[1], space=new_bonds))

# %% [markdown]
# Everything that may be said about edits: [say what may change](../how-to/rules.md).
#
# Next: [many targets and the report](many_targets.py).
