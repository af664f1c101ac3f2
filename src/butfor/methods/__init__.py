"""The methods: one file each, one class each (the two ego baselines share what an ego graph is)."""

from butfor.methods.attack import GRBCD as GRBCD
from butfor.methods.attack import PRBCD as PRBCD
from butfor.methods.base import BatchMethod as BatchMethod
from butfor.methods.base import Method as Method
from butfor.methods.cf_gnn import CFGNN as CFGNN
from butfor.methods.descent import Descent as Descent
from butfor.methods.ego import KeepEgo as KeepEgo
from butfor.methods.ego import RemoveEgo as RemoveEgo
from butfor.methods.exact import Exact as Exact
from butfor.methods.greedy import Greedy as Greedy
from butfor.methods.random import RandomPerturbation as RandomPerturbation
from butfor.methods.registry import MethodRegistry
from butfor.methods.subgraph import RemoveSubgraph as RemoveSubgraph

METHODS = MethodRegistry(
    {
        "exact": Exact,
        "greedy": Greedy,
        "descent": Descent,
        "cf-gnn": CFGNN,
        "prbcd": PRBCD,
        "grbcd": GRBCD,
        "random": RandomPerturbation,
        "keep-ego": KeepEgo,
        "remove-ego": RemoveEgo,
        "remove-subgraph": RemoveSubgraph,
    }
)
"""The methods by the names that the command line knows them by; packages may bring more.

Examples:
    >>> import butfor
    >>> list(butfor.methods.METHODS)[:4]
    ['exact', 'greedy', 'descent', 'cf-gnn']
    >>> butfor.methods.METHODS["greedy"]()
    Greedy(width=64)
"""
