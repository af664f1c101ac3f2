"""The one list of methods that tests go through: every registered method, with settings that are quick enough."""

from __future__ import annotations

import butfor
from butfor.methods import METHODS, Method

# How a method is built for tests, where its defaults would take too long or need more than a graph.
QUICK: dict[str, Method] = {
    "cf-gnn": butfor.CFGNN(epochs=25),
    "prbcd": butfor.PRBCD(epochs=2, samples=2),
    "random": butfor.RandomPerturbation(samples=30),
    "remove-subgraph": butfor.RemoveSubgraph(size=2, epochs=3),
}

# A method that is added to the registry, here or by another package, is in this list without a change.
ALL: dict[str, Method] = {name: QUICK.get(name) or method() for name, method in METHODS.items()}

# Other settings, which take other ways through the same methods.
VARIANTS: tuple[Method, ...] = (
    butfor.Exact(all_smallest=True, k=3),
    butfor.Exact(incumbent=butfor.RandomPerturbation(samples=10)),
    butfor.Greedy(width=2),
    butfor.CFGNN.published(epochs=25, momentum=0.9),
    butfor.CFGNN(epochs=25, optimizer="adam", degrees="soft", clip=1.0),
    butfor.CFGNN(epochs=25, optimizer="adadelta", lr=1.0, distance_gradient=False),
)
