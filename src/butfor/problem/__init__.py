"""One target with everything that a method needs: target, goal, budget, problem, and what builds it."""
