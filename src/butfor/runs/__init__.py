"""A run: many targets explained by one method, each result saved as soon as there is one."""

from butfor.runs.store import Outcome, Run, RunOfGraphs, Store, read_results

__all__ = ["Outcome", "Run", "RunOfGraphs", "Store", "read_results"]
