"""``butfor explore``: a page on this machine to look at predictions and to try out edits."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter, validators

from butfor.cli.edit_space import read_space
from butfor.cli.output import note, say
from butfor.cli.source import Source
from butfor.errors import InputError
from butfor.predict.predictor import Scope
from butfor.problem.builder import MAX_EDGES
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    from butfor.cli.source import ModelAndGraphs

__all__ = ["explore"]

PAGE = Group("Page", sort_key=12)
QUESTION = Group("Question", sort_key=13)


def explore(
    *,
    source: Source | None = None,
    node: Annotated[str | None, Parameter(group=PAGE)] = None,
    link: Annotated[str | None, Parameter(group=PAGE)] = None,
    number: Annotated[int | None, Parameter(group=PAGE)] = None,
    port: Annotated[int, Parameter(group=PAGE, validator=validators.Number(gte=0, lte=65535))] = 0,
    browser: Annotated[bool, Parameter(group=PAGE)] = True,
    wanted: Annotated[str | None, Parameter(group=QUESTION)] = None,
    probability: Annotated[float | None, Parameter(group=QUESTION)] = None,
    threshold: Annotated[float | None, Parameter(group=QUESTION)] = None,
    space: Annotated[Path | None, Parameter(group=QUESTION)] = None,
    verify: Annotated[Scope | None, Parameter(group=QUESTION)] = None,
    max_edges: Annotated[int, Parameter(group=QUESTION, validator=validators.Number(gte=1))] = MAX_EDGES,
) -> None:
    """Open a page in the browser: delete and add edges, watch the prediction follow, and find the fewest edits.

    The page is served on this machine and for nobody else; Ctrl-C ends it.

    Args:
        source: the model and the graph.
        node: the node to begin with; by its own id if the nodes have ids.
        link: a link to begin with, given as its two nodes: 3-17. The model then predicts links.
        number: the graph to begin with, where there are several.
        port: the port to listen on; by default any that is free.
        browser: whether to open the page; its address is printed in any case.
        wanted: the class to reach, by number or name; it can be changed on the page.
        probability: the lowest probability that the new class may have; it can be changed on the page.
        threshold: for a model that returns one number: it predicts class 1 above this threshold, and class 0 otherwise.
        space: a JSON file that says which edits are allowed and what they cost, as for butfor explain. On the page more
            edges can be protected and other costs given, but no further kinds of edits allowed.
        verify: what edits are made and the model is run on: whole-graph, or the receptive-field of the target.
        max_edges: a target whose neighbourhood has more edges is not shown.
    """
    from butfor.pages.explore import explore as open_page

    subject = (source or Source()).read()
    several = len(subject.graphs) > 1
    target = _target(subject, node, link, number)
    server = open_page(
        subject.model,
        subject.graphs if several else subject.graph,
        target,
        title=_title(source),
        port=port,
        browser=False,
        wait=False,
        goal=Goal(wanted, 0.0, probability, threshold),
        space=read_space(space, "", None if several else subject.graph),
        directed=None if source is None else source.options.directed,
        verify=verify,
        max_edges=max_edges,
    )
    say(f"the explorer is at {server.url}")
    note("the address works once, and on this machine only; Ctrl-C ends the explorer")
    if browser:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.wait()
    except KeyboardInterrupt:
        say("the explorer has ended")


def _target(subject: "ModelAndGraphs", node: str | None, link: str | None, number: int | None) -> Any:
    """What is shown first; None to leave it to the page."""
    from butfor.cli.target_lists import parse_graphs, parse_links, parse_nodes

    given = {"--node": node, "--link": link, "--number": None if number is None else str(number)}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"{' and '.join(named)} are given together; begin with one target")
    if number is not None:
        return parse_graphs(str(number), len(subject.graphs), ())[0]
    if node is None and link is None:
        return None
    found: list[Any] = parse_links(link, subject.graph) if link is not None else parse_nodes(str(node), subject.graph)
    if len(found) != 1:
        raise InputError(f"{named[0]} names {len(found)} targets; begin with one")
    return found[0]


def _title(source: Source | None) -> str:
    assert source is not None  # or reading it would have failed
    named = source.checkpoint or source.published or source.model
    return f"butfor explorer: {Path(str(named)).name}"
