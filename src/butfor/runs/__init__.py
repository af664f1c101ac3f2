"""A run: many targets explained by one method, each result saved as soon as there is one."""

from butfor.runs.folder import Folder
from butfor.runs.results import Results, load_results, read_results
from butfor.runs.run import Run, RunOfGraphs
from butfor.runs.sink import Outcome
from butfor.runs.store import Store

__all__ = ["Folder", "Outcome", "Results", "Run", "RunOfGraphs", "Store", "load_results", "read_results"]
