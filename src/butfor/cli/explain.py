"""``butfor explain``: verified counterfactuals, one per line, as they come."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, validators

from butfor.cli.hyperparameters import FLAGS, make_method
from butfor.cli.nodes import parse_edges, parse_nodes
from butfor.cli.output import note, say, stream
from butfor.cli.source import Seed, Source
from butfor.space import EditSpace
from butfor.errors import ButforError, InputError
from butfor.explainer import Explainer
from butfor.goal import Goal
from butfor.methods import METHODS
from butfor.problem import Budget
from butfor.runs import Outcome, Run, Store

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.counterfactual import Counterfactual

    MethodName = str
    Flags = Any
else:
    MethodName = Literal[tuple(METHODS)]
    Flags = FLAGS

__all__ = ["explain"]

INTERRUPTED = 130
DEFAULT = Budget()

SEARCH = Group("Search", sort_key=12)
OUTPUT = Group("Output", sort_key=13)
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def explain(
    *,
    source: Source | None = None,
    nodes: Annotated[str, Parameter(group=SEARCH)] = "test",
    limit: Annotated[Count | None, Parameter(group=SEARCH)] = None,
    method: Annotated[MethodName, Parameter(group=SEARCH)] = "exact",
    published_choices: Annotated[bool, Parameter(group=SEARCH, negative=(), show_default=False)] = False,
    flags: Flags = None,
    wanted: Annotated[str | None, Parameter(group=SEARCH)] = None,
    least: Annotated[float, Parameter(group=SEARCH)] = 0.0,
    protect: Annotated[str, Parameter(group=SEARCH, show_default=False)] = "",
    evaluations: Annotated[int | Literal["none"], Parameter(group=SEARCH)] = DEFAULT.evaluations or "none",
    seconds: Annotated[float | None, Parameter(group=SEARCH)] = None,
    seed: Annotated[Seed, Parameter(group=SEARCH)] = 0,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    quiet: Annotated[bool, Parameter(group=OUTPUT, negative=(), show_default=False)] = False,
) -> int:
    """Explain nodes, and keep each result as soon as it is verified on the whole graph.

    Args:
        source: the model and the graph.
        nodes: a list such as 1,2,5-9; a file of such lists, or @file; the name of a mask; or all. If the graph
            has node ids of its own, as from a node table, these are meant.
        limit: explain only the first so many of these nodes.
        method: how to search.
        published_choices: for cf-gnn, begin with what the published code does, not with what the paper says.
        flags: the method's hyper-parameters.
        wanted: the class to reach, by number or name; any other class unless given.
        least: by how much, in scores, the new class must lead.
        protect: edges that must stay, such as 3-17,4-9.
        evaluations: the most edit sets to try for one node; none for no limit.
        seconds: the most time to spend on one node.
        seed: for methods that draw random numbers.
        out: append the results to this file (JSON Lines). If it holds results of this very run already, it is
            continued and nothing is repeated. Without it the results are printed.
        quiet: no progress bar and no notes.
    """
    started = time.monotonic()
    chosen = make_method(method, flags, published_choices)
    budget = Budget(None if evaluations == "none" else evaluations, seconds)
    model, data = (source or Source()).read()
    explainer = Explainer.of(
        model,
        data,
        method=chosen,
        goal=Goal(_class(wanted, data), least),
        space=EditSpace(protected=parse_edges(protect, data)),
        budget=budget,
        directed=None if source is None else source.options.directed,
        seed=seed,
    )
    targets = parse_nodes(nodes, data)[:limit]
    with _Printer() if out is None else Store(out, Run.of(explainer)) as sink:
        todo = [node for node in targets if node not in sink.done]
        _greet(sink, len(targets), len(todo), quiet)
        try:
            for result in stream(explainer, todo, quiet=quiet):
                sink.append(result)
        except (KeyboardInterrupt, ButforError) as problem:
            kept = _kept(sink, targets)
            if isinstance(problem, ButforError):
                note(kept, quiet)
                raise
            print(f"interrupted: {kept}", file=sys.stderr)
            return INTERRUPTED
        summary = _summary([sink.done[node] for node in targets], time.monotonic() - started)
    if out is not None:
        say(f"{summary}; results in {out}")
    elif not quiet:
        print(summary, file=sys.stderr)
    return 0


class _Printer:
    """Takes results as a store does, and only prints them."""

    def __init__(self) -> None:
        self.done: dict[int | tuple[int, int], Outcome] = {}

    def append(self, result: "Counterfactual") -> None:
        """Print the result's sentence."""
        say(str(result))
        self.done[result.target] = Outcome(result.status, result.size)

    def __enter__(self) -> "_Printer":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _class(wanted: str | None, data: "Data") -> int | None:
    """The number of a class given by number or name."""
    names = [str(name) for name in data.class_names] if "class_names" in data else []
    if wanted is None or wanted in names:
        return None if wanted is None else names.index(wanted)
    try:
        return int(wanted)
    except ValueError:
        known = f" ({', '.join(names)})" if names else "; give its number"
        raise InputError(f"--wanted {wanted!r} is no class of this graph{known}") from None


def _greet(sink: _Printer | Store, total: int, todo: int, quiet: bool) -> None:
    if not isinstance(sink, Store):
        return
    if sink.notice:
        note(sink.notice, quiet)
    if not todo:
        note(f"all {total} nodes are in {sink.path} already: nothing to do", quiet)
    elif todo < total:
        note(f"{total - todo} of {total} nodes are in {sink.path} already: going on with the rest", quiet)


def _kept(sink: _Printer | Store, targets: Sequence[int]) -> str:
    done = f"{sum(node in sink.done for node in targets)} of {len(targets)} nodes are done"
    if isinstance(sink, Store):
        return f"{done} and kept in {sink.path}; the same command goes on with the rest"
    return f"{done}; with --out FILE a run that was interrupted can be continued"


def _summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    sizes = [outcome.size for outcome in outcomes if outcome.size is not None]
    mean = f"; mean size {sum(sizes) / len(sizes):.2f}" if sizes else ""
    counts = Counter(str(outcome.status) for outcome in outcomes)
    statuses = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()))
    found = f"{len(sizes)} of {len(outcomes)} nodes have a counterfactual{mean}"
    return f"{found}; status: {statuses}; {seconds:.1f} s"
