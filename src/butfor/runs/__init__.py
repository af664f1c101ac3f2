"""Runs: many targets, one method, results kept as they come."""

from butfor.runs.store import Outcome, Run, RunOfGraphs, Store, read_results

__all__ = ["Outcome", "Run", "RunOfGraphs", "Store", "read_results"]
