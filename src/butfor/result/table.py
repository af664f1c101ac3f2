"""Results as a table, a row for each: of polars, of pandas, or as HTML for a notebook."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports
from butfor.errors import InputError
from butfor.result.html import table
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polars import DataFrame

    from butfor.result.counterfactual import Counterfactual

__all__ = ["COLUMNS", "counted", "frame_of", "to_frame", "to_html"]

# So many results are turned into a table at a time.
PIECE = 10_000
# So many rows are shown in a notebook.
SHOWN = 40

# The columns of a table of results, and their types in polars.
COLUMNS = {
    "task": "String",
    "source": "Int64",  # the first node of a link; null for anything else
    "target": "Int64",
    "name": "String",
    "status": "String",
    "before": "String",
    "before_probability": "Float64",
    "after": "String",
    "after_probability": "Float64",
    "size": "Int64",
    "cost": "Float64",
    "lower_bound": "Float64",
    "edits": "String",  # as JSON
    "nodes": "Int64",
    "edges": "Int64",
    "evaluations": "Int64",
    "seconds": "Float64",
    "note": "String",
}


def to_frame(results: Iterable[Counterfactual], kind: str) -> Any:
    """A table with one row for each result, of polars or pandas.

    Raises:
        InputError: ``kind`` is neither "polars" nor "pandas", or these are not installed.
    """
    if kind not in ("polars", "pandas"):
        raise InputError(f"there are no tables of {kind!r}; give 'polars' or 'pandas'")
    with optional_imports():
        polars, made = import_module("polars"), import_module(kind)
    rows = iter(results)
    pieces = [frame_of(())]
    while piece := list(islice(rows, PIECE)):
        pieces.append(frame_of(piece))
    frame = polars.concat(pieces)
    return frame if kind == "polars" else made.DataFrame(frame.to_dict(as_series=False), columns=list(COLUMNS))


def frame_of(results: Iterable[Counterfactual]) -> DataFrame:
    """Results as a polars table with `COLUMNS`."""
    import polars

    types = {name: getattr(polars, kind) for name, kind in COLUMNS.items()}
    return polars.DataFrame(list(map(_row, results)), schema=types, orient="row")


def _row(result: Counterfactual) -> tuple[Any, ...]:
    source, target = result.target if isinstance(result.target, tuple) else (None, result.target)
    before = None if result.status is Status.FAILED or result.before.label < 0 else result.before
    row = {
        "task": result.task,
        "source": source,
        "target": target,
        "name": result.target_name,
        "status": result.status.value,
        "before": None if before is None else before.name,
        "before_probability": None if before is None else before.probability,
        "after": None if result.after is None else result.after.name,
        "after_probability": None if result.after is None else result.after.probability,
        "size": result.size,
        "cost": result.cost if result.found else None,
        "lower_bound": result.lower_bound,
        "edits": json.dumps([edit.plain for edit in result.edits]),
        "nodes": result.nodes,
        "edges": result.edges,
        "evaluations": result.evaluations,
        "seconds": result.seconds,
        "note": result.note,
    }
    return tuple(row[name] for name in COLUMNS)


def counted(results: Iterable[Counterfactual]) -> str:
    """How many results there are of each status: "12 optimal, 3 impossible"."""
    counts = Counter(result.status for result in results)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def to_html(results: Iterable[Counterfactual], caption: str, total: int | None) -> str:
    """The first results as a table for a notebook; ``total`` says how many there are, None if that is not known."""
    first = list(islice(results, SHOWN + 1))
    left = max(0, len(first) - SHOWN if total is None else total - SHOWN)
    more = "" if not left else "and more" if total is None else f"and {left} more"
    head = ("target", "status", "before → after", "size", "lower bound", "in a sentence")
    return table(caption, head, map(_cells, first[:SHOWN]), more)


def _cells(result: Counterfactual) -> tuple[str, ...]:
    known = [str(said) for said in (result.before, result.after) if said is not None and said.label >= 0]
    return (
        result.target_name,
        result.status.value,
        " → ".join(known) or "–",
        "–" if result.size is None else str(result.size),
        # It is proved that no edits do it.
        "∞" if result.lower_bound is None else f"{result.lower_bound:g}",
        str(result),
    )
