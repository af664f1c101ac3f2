"""butfor: the fewest edges whose removal makes a graph neural network predict something else."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from butfor import datasets, evaluation, models
    from butfor.api import explain
    from butfor.counterfactual import Counterfactual, Prediction, Status
    from butfor.edits import Addition, Change, Deletion
    from butfor.errors import ButforError
    from butfor.explainer import Explainer
    from butfor.goal import Goal
    from butfor.methods import (
        CFGNN,
        GRBCD,
        PRBCD,
        Exact,
        Greedy,
        KeepEgo,
        RandomPerturbation,
        RemoveEgo,
        RemoveSubgraph,
    )
    from butfor.problem import Budget
    from butfor.space import EditSpace, Features, Within
    from butfor.targets import Pair
    from butfor.version import __version__

__all__ = [
    "CFGNN",
    "GRBCD",
    "PRBCD",
    "Addition",
    "Budget",
    "ButforError",
    "Change",
    "Counterfactual",
    "Deletion",
    "EditSpace",
    "Exact",
    "Explainer",
    "Features",
    "Goal",
    "Greedy",
    "KeepEgo",
    "Pair",
    "Prediction",
    "RandomPerturbation",
    "RemoveEgo",
    "RemoveSubgraph",
    "Status",
    "Within",
    "__version__",
    "datasets",
    "evaluation",
    "explain",
    "models",
]

# Where each public name lives. Torch and PyG take seconds to import, so that is left to the first use.
_HOME = {
    "Budget": "problem",
    "ButforError": "errors",
    "CFGNN": "methods",
    "Counterfactual": "counterfactual",
    "Addition": "edits",
    "Change": "edits",
    "Deletion": "edits",
    "EditSpace": "space",
    "Features": "space",
    "Pair": "targets",
    "Within": "space",
    "Exact": "methods",
    "Explainer": "explainer",
    "Goal": "goal",
    "GRBCD": "methods",
    "Greedy": "methods",
    "PRBCD": "methods",
    "KeepEgo": "methods",
    "Prediction": "counterfactual",
    "RandomPerturbation": "methods",
    "RemoveEgo": "methods",
    "RemoveSubgraph": "methods",
    "Status": "counterfactual",
    "__version__": "version",
    "explain": "api",
}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "evaluation", "models"):
        return importlib.import_module(f"butfor.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"butfor.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'butfor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
