"""The report of a run: one HTML file with all its results, which needs nothing but a browser."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from butfor.boundary.atomic import atomic_write
from butfor.boundary.printable import printable
from butfor.errors import InputError
from butfor.graph.fingerprint import graph_fingerprint, model_fingerprint
from butfor.pages.assets import page
from butfor.pages.records import record_of
from butfor.pages.scene import Legend
from butfor.result.recovered import context_of
from butfor.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from torch import nn

    from butfor.result.context import PlotContext
    from butfor.result.counterfactual import Counterfactual

__all__ = ["report"]

NO_GRAPH = "The graph was not given, so pictures show the edits alone."
NO_CLASSES = "Of this graph only receptive fields are read, so pictures do not show the classes of nodes."


def report(
    results: Iterable[Counterfactual],
    path: str | os.PathLike[str],
    *,
    data: Data | HeteroData | Sequence[Data | HeteroData] | None = None,
    model: nn.Module | None = None,
    title: str = "Counterfactual explanations",
    replace: bool = False,
    progress: bool = False,
) -> Path:
    """Write the report of many results: a table to search and filter, the picture of each, and what recurs in them.

    It is one HTML file that loads nothing from the network.

    Args:
        results: what `explain` returned, or `load_results`.
        path: the file to write; its name ends in .html.
        data: the graph, or the graphs that were explained as wholes. Results that come from `explain` know theirs; for
            those from a file it is needed with the model, else pictures show the edits alone.
        model: the model that was explained.
        title: the heading of the page.
        replace: whether a file that exists may be replaced.
        progress: show a progress bar on standard error, where that is a terminal.

    Returns:
        The path.

    Raises:
        InputError: the file exists or cannot be written, there are no results, or they are of another graph or model.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> results = butfor.explain(model, data, range(600, 610))
        >>> print(butfor.report(results, "report.html", title="Ten nodes of Tree-Cycles"))
        report.html
    """
    file = check_page(Path(path), replace)
    if (data is None) != (model is None):
        raise InputError(f"the {'graph' if model is None else 'model'} is given alone; give the model and the graph")
    contexts, legend = _Contexts(data, model), Legend()
    records: list[dict[str, Any]] = []
    # tqdm takes a semaphore even for a bar that is not shown.
    for result in tqdm(results, desc="writing", unit="result", disable=None) if progress else results:
        records.append(record_of(result, legend, contexts.of(result)))
    if not records:
        raise InputError("there are no results to report on")
    tasks = {record["task"] for record in records}
    content = {
        "title": printable(title),
        "noun": tasks.pop() if len(tasks) == 1 else "target",
        "note": " ".join(contexts.notes),
        "footer": f"Written by butfor {__version__}. Every counterfactual was verified: the edits were made and the "
        "model was run on the result.",
        "legend": legend.plain,
        "results": records,
    }
    write_page(file, page("report", printable(title), content, policy_in_page=True))
    return file


def check_page(path: Path, replace: bool) -> Path:
    """The path, if a page may be written there.

    Raises:
        InputError: its name does not end in .html, there is no such folder, or it exists and may not be replaced.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path} is no page: its name must end in .html")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists() and not (replace and path.is_file()):
        raise InputError(f"{path} exists already; choose another file, or replace it (--force, replace=True)")
    return path


def write_page(path: Path, text: str) -> None:
    """Write a page completely or not at all."""
    try:
        with atomic_write(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


@dataclass
class _Contexts:
    """The graph of each result, with the classes of its nodes where these are known."""

    data: Data | HeteroData | Sequence[Data | HeteroData] | None
    model: nn.Module | None
    notes: dict[str, None] = field(default_factory=dict)
    _known: dict[int, PlotContext] = field(default_factory=dict)
    _graph_ids: dict[int, str] = field(default_factory=dict)

    @cached_property
    def _model_id(self) -> str:
        assert self.model is not None
        return model_fingerprint(self.model)

    def of(self, result: Counterfactual) -> PlotContext | None:
        """None where the graph is not known."""
        context = self._given(result) if self.data is not None and self.model is not None else result._context
        if context is None:
            self.notes[NO_GRAPH] = None
        elif context.classes is None:
            # Each class would be a run of its own.
            self.notes[NO_CLASSES] = None
            context = replace(context, predictor=None)
        return context

    def _given(self, result: Counterfactual) -> PlotContext:
        assert self.data is not None
        assert self.model is not None
        if isinstance(self.data, (Data, HeteroData)):
            data = self.data
        elif result.task == "graph" and not isinstance(result.target, tuple) and result.target < len(self.data):
            data = self.data[result.target]
        else:
            raise InputError(f"{result.target_name} is not among the {len(self.data)} graphs that were given")
        if id(data) not in self._graph_ids:
            self._graph_ids[id(data)] = graph_fingerprint(data)
        ids = ("graph", result.graph_id, self._graph_ids[id(data)]), ("model", result.model_id, self._model_id)
        for what, theirs, ours in ids:
            if theirs != ours:
                raise InputError(
                    f"the result of {result.target_name} is of another {what} ({theirs} instead of {ours}); "
                    f"give the {what} that was explained"
                )
        if id(data) not in self._known:
            self._known[id(data)] = context_of(result, data, self.model, "report")
        return self._known[id(data)]
