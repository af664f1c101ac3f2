"""One target with everything that a method needs: target, goal, budget, problem, and what builds it."""

from butfor.problem.budget import Budget, Meter
from butfor.problem.goal import Goal
from butfor.problem.problem import Answers, Problem
from butfor.problem.proposal import Proposal
from butfor.problem.target import Pair

__all__ = ["Answers", "Budget", "Goal", "Meter", "Pair", "Problem", "Proposal"]
