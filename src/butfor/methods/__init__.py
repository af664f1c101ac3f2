"""The methods: one file each, one class each (the two ego baselines share what an ego graph is)."""

from butfor.methods.attack import GRBCD, PRBCD
from butfor.methods.base import BatchMethod, Method
from butfor.methods.cf_gnn import CFGNN
from butfor.methods.ego import KeepEgo, RemoveEgo
from butfor.methods.exact import Exact
from butfor.methods.greedy import Greedy
from butfor.methods.random import RandomPerturbation
from butfor.methods.subgraph import RemoveSubgraph

__all__ = [
    "CFGNN",
    "GRBCD",
    "METHODS",
    "PRBCD",
    "BatchMethod",
    "Exact",
    "Greedy",
    "KeepEgo",
    "Method",
    "RandomPerturbation",
    "RemoveEgo",
    "RemoveSubgraph",
]

# The names the command line knows them by.
METHODS: dict[str, type[Method]] = {
    "exact": Exact,
    "greedy": Greedy,
    "cf-gnn": CFGNN,
    "prbcd": PRBCD,
    "grbcd": GRBCD,
    "random": RandomPerturbation,
    "keep-ego": KeepEgo,
    "remove-ego": RemoveEgo,
    "remove-subgraph": RemoveSubgraph,
}
