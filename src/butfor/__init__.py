"""butfor: the fewest edges whose removal makes a graph neural network predict something else."""

from butfor import datasets, evaluation, models
from butfor.counterfactual import Counterfactual, Prediction, Status
from butfor.edits import EditSpace
from butfor.errors import ButforError
from butfor.explainer import Explainer, explain
from butfor.goal import Goal
from butfor.methods import CFGNN, Greedy, KeepEgo, RandomPerturbation, RemoveEgo, RemoveSubgraph
from butfor.problem import Budget
from butfor.version import __version__

__all__ = [
    "CFGNN",
    "Budget",
    "ButforError",
    "Counterfactual",
    "EditSpace",
    "Explainer",
    "Goal",
    "Greedy",
    "KeepEgo",
    "Prediction",
    "RandomPerturbation",
    "RemoveEgo",
    "RemoveSubgraph",
    "Status",
    "__version__",
    "datasets",
    "evaluation",
    "explain",
    "models",
]
