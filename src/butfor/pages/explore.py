"""`explore`: a page on one's own machine to look at a model's predictions and to try out edits."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Batch, Data, HeteroData

from butfor.boundary.arguments import check_whole
from butfor.errors import InputError
from butfor.graph.stores import from_stores, is_stores
from butfor.graphs import Graphs
from butfor.pages.explorer import Explorer
from butfor.pages.server import Server
from butfor.problem.target import Pair, task_of
from butfor.session import Session

if TYPE_CHECKING:
    from torch import nn

__all__ = ["explore", "explorer_of"]


def explore(
    model: nn.Module,
    data: Any,
    target: int | Pair | None = None,
    *,
    title: str = "butfor explorer",
    port: int = 0,
    browser: bool = True,
    wait: bool | None = None,
    **settings: Any,
) -> Server:
    """Open a page on this machine: look at a target, delete and add edges, and watch the prediction follow.

    Nothing of it can be reached from other machines, or by other pages (`butfor.pages.server` says how).

    Args:
        model: as for `explain`.
        data: one graph; or several, to explore each as a whole.
        target: what is shown first: a node, a `Pair`, or the number of a graph.
        title: what the page is called.
        port: where to listen; 0 for any port that is free.
        browser: whether to open the page in a browser.
        wait: whether to serve until Ctrl-C; by default in scripts, and not where somebody types. What is returned has
            the ``url``, and ``close()``.
        settings: further arguments of `prepare`: ``task``, ``node_type``, ``goal``, ``space``, ``directed``, ...

    Raises:
        GraphError: the graph is malformed.
        ModelError: the model does not fit the graph.
        InputError: an argument makes no sense, or the port is taken.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> server = butfor.explore(model, data, 605, browser=False, wait=False)
        >>> server.url
        'http://127.0.0.1:.../?token=...'
        >>> server.close()
    """
    check_whole(port, "port", 0)
    server = Server(explorer_of(model, data, target, title, **settings), port)
    if browser:
        webbrowser.open(server.url)
    if not _somebody_types() if wait is None else wait:
        print(f"The explorer is at {server.url} (Ctrl-C ends it)", file=sys.stderr)
        server.wait()
    return server


def _somebody_types() -> bool:
    """Whether this is a prompt or a notebook; that a script has imported IPython does not make it one."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


def explorer_of(
    model: nn.Module, data: Any, target: Any = None, title: str = "butfor explorer", **settings: Any
) -> Explorer:
    """What answers the page's questions about a model and a graph, or several graphs."""
    if isinstance(data, Batch):
        data = data.to_data_list()
    if is_stores(data):
        data = from_stores(data)
    subject: Session | Graphs
    if isinstance(data, (Data, HeteroData)):
        settings.setdefault("task", "link" if isinstance(target, Pair) else "node")
        subject = Session.of(model, data, **settings)
        if target is not None and task_of(target) != subject.predictor.task:
            raise InputError(f"the target is {target!r}, but the model was prepared for a {subject.predictor.task}")
    else:
        graphs = list(data)
        if not graphs:
            raise InputError("there are no graphs to explore")
        settings.pop("task", None)
        subject = Graphs(model, graphs, settings)
        subject.first  # noqa: B018 (what is wrong with the model shows now)
    explorer = Explorer(subject, target, title)
    if target is not None:
        explorer.naming.read(explorer.naming.plain(target))
    return explorer
