"""``butfor report``: all results of a run as one page to look through."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from butfor.cli.output import read_with_notes, say
from butfor.cli.source import Source
from butfor.errors import StoreError

__all__ = ["report"]


def report(
    results: Path,
    /,
    *,
    out: Path = Path("report.html"),
    title: str | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    source: Source | None = None,
) -> None:
    """Write one HTML file with a table of all results, the picture of each, and what recurs in them.

    It opens in any browser and loads nothing from the network. Without a model and a graph, pictures show the edits
    alone.

    Args:
        results: a file or folder that butfor explain wrote.
        out: the file to write.
        title: the heading of the page; by default the name of the results.
        force: replace the file if it exists.
        quiet: show no progress bar.
        source: the model and the graph that the results are of.
    """
    from butfor.pages.report import check_page
    from butfor.pages.report import report as write

    check_page(out, force)
    found = read_with_notes(results)
    if not found:
        raise StoreError(f"{results} holds no results")
    subject = None if source is None else source.read()
    graphs = None if subject is None else subject.graphs
    write(
        found,
        out,
        data=graphs[0] if graphs is not None and len(graphs) == 1 else graphs,
        model=None if subject is None else subject.model,
        title=title or results.name,
        replace=force,
        progress=not quiet,
    )
    size = out.stat().st_size / 1e6
    say(f"the report of {len(found)} results is in {out} ({size:.1f} MB); open it in a browser")
