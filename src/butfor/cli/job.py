"""A job: targets of one kind, what their results have in common, and the results, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butfor import spread
from butfor.cli.progress import Tally, progress
from butfor.cli.target_lists import parse_graphs, parse_links, parse_nodes
from butfor.errors import InputError
from butfor.live import live_line
from butfor.models.threads import threads_for
from butfor.runs import Run, RunOfGraphs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_geometric.data import Data

    from butfor.cli.progress import ProgressKind
    from butfor.cli.source import ModelAndGraphs
    from butfor.executors import Executor
    from butfor.graphs import Graphs
    from butfor.methods import Method
    from butfor.predict.call import Task
    from butfor.problem.budget import Budget
    from butfor.problem.target import Pair
    from butfor.result.counterfactual import Counterfactual
    from butfor.session import Session
    from butfor.spread import Question

__all__ = ["Job", "Search", "Targets", "WholeGraphs", "WithinGraph"]


@dataclass(frozen=True)
class Targets:
    """What the user wants explained, as text: nodes or links of one graph, or whole graphs."""

    task: Task
    text: str

    @classmethod
    def of(cls, subject: ModelAndGraphs, nodes: str | None, links: str | None, graphs: str | None) -> Targets:
        """What one of these three flags says; without any, the test nodes or test graphs.

        Raises:
            InputError: several are given.
        """
        flags: dict[Task, tuple[str, str | None]] = {
            "node": ("--nodes", nodes),
            "link": ("--links", links),
            "graph": ("--graphs", graphs),
        }
        given = [cls(task, text) for task, (_, text) in flags.items() if text is not None]
        if len(given) > 1:
            names = " and ".join(flags[one.task][0] for one in given)
            raise InputError(f"{names} are given together; explain one kind at a time, each into a file of its own")
        return given[0] if given else cls("node" if len(subject.graphs) == 1 else "graph", "test")

    def numbers(self, subject: ModelAndGraphs) -> list[int]:
        """The numbers of the graphs to explain."""
        return parse_graphs(self.text, len(subject.graphs), subject.test)

    def within(self, data: Data) -> list[int] | list[Pair]:
        """The nodes or links of this graph to explain."""
        return parse_links(self.text, data) if self.task == "link" else parse_nodes(self.text, data)


@dataclass(frozen=True)
class Search:
    """How to search for counterfactuals: the method, the budget, the seed, and where."""

    method: Method
    budget: Budget | None = None
    seed: int = 0
    executor: Executor | None = None

    def run(self, session: Session) -> Run:
        """What the results of this search in a session have in common."""
        return Run.of(session, self.method, self.seed)


@dataclass(frozen=True, eq=False)
class WithinGraph:
    """Nodes or links of one graph."""

    session: Session
    targets: Sequence[int | Pair]
    search: Search
    label: str = "explaining"

    @property
    def what(self) -> str:
        """The kind of target: node or link."""
        return self.session.predictor.task

    @property
    def run(self) -> Run:
        """What the results will have in common."""
        return self.search.run(self.session)

    def results(self, todo: Sequence[Any], show: ProgressKind = "auto") -> Iterator[Counterfactual]:
        """The results of these targets, each as soon as it is found, while standard error says how far it is."""
        return _results(self, self.session, todo, show, self.session.graph.num_edges)


@dataclass(frozen=True, eq=False)
class WholeGraphs:
    """Graphs, each explained as a whole."""

    graphs: Graphs
    targets: Sequence[int]
    search: Search
    what: str = "graph"
    label: str = "explaining"

    @property
    def run(self) -> RunOfGraphs:
        """What the results will have in common."""
        first = self.search.run(self.graphs.first)
        return RunOfGraphs(first, self.graphs.graphs, self.graphs.settings["directed"])

    def results(self, todo: Sequence[Any], show: ProgressKind = "auto") -> Iterator[Counterfactual]:
        """The results of these graphs, each as soon as it is found, while standard error says how far it is."""
        return _results(self, self.graphs, todo, show, max(self.graphs.graphs[number].num_edges for number in todo))


Job = WithinGraph | WholeGraphs


def _results(
    job: Job, question: Question, todo: Sequence[Any], show: ProgressKind, edges: int
) -> Iterator[Counterfactual]:
    """The results of some targets of a job; those that fail say why, unless all do."""
    tally = Tally(len(todo), job.what, dict(zip(todo, question.costs(todo).tolist(), strict=True)))
    alone = len(todo) == 1 and job.search.executor is None and show in ("auto", "bar")
    with threads_for(edges), live_line(alone) as line:
        search = spread.Search(question, job.search.method, job.search.budget, job.search.seed, line)
        show = show if line is None else "none"
        found = spread.spread(search, todo, job.search.executor, begun=len(todo) < len(job.targets))
        yield from progress((result for _, result in found), tally, job.label, show)
