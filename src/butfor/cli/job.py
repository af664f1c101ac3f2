"""A job: targets of one kind, what their results have in common, and the results, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butfor.cli.output import progress
from butfor.cli.target_lists import parse_graphs, parse_links, parse_nodes
from butfor.errors import ButforError, InputError
from butfor.models.threads import threads_for
from butfor.runs import Run
from butfor.runs.store import RunOfGraphs
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_geometric.data import Data

    from butfor.cli.source import ModelAndGraphs
    from butfor.methods import Method
    from butfor.predict.call import Task
    from butfor.problem.budget import Budget
    from butfor.problem.target import Pair, Target
    from butfor.result.counterfactual import Counterfactual

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
    """How to search for counterfactuals: the method, the budget and the seed."""

    method: Method
    budget: Budget | None = None
    seed: int = 0

    def run(self, session: Session) -> Run:
        """What the results of this search in a session have in common."""
        return Run.of(session, self.method, self.seed)

    def results(self, session: Session, targets: Sequence[Target]) -> Iterator[Counterfactual]:
        """The results of these targets, each as soon as it is found."""
        found = session.stream(targets, self.method, budget=self.budget, seed=self.seed)
        with threads_for(session.graph.data.num_edges):
            for _, result in found:
                yield result


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

    def results(self, todo: Sequence[Any], quiet: bool) -> Iterator[Counterfactual]:
        """The results of these targets, each as soon as it is found, with a progress bar."""
        return progress(self.search.results(self.session, todo), len(todo), self.what, self.label, quiet)


@dataclass(frozen=True, eq=False)
class WholeGraphs:
    """Graphs, each explained as a whole; ``settings`` are further arguments of `Session.of`."""

    subject: ModelAndGraphs
    targets: Sequence[int]
    search: Search
    settings: dict[str, Any]
    what: str = "graph"
    _sessions: dict[int, Session] = field(default_factory=dict)

    @property
    def run(self) -> RunOfGraphs:
        """What the results will have in common."""
        first = self.search.run(self._session(self.targets[0]))
        return RunOfGraphs(first, self.subject.graphs, self.settings["directed"])

    def results(self, todo: Sequence[Any], quiet: bool) -> Iterator[Counterfactual]:
        """The results of these graphs, each as soon as it is found, with a progress bar."""
        return progress(self._one_by_one(todo), len(todo), self.what, quiet=quiet)

    def _one_by_one(self, todo: Sequence[int]) -> Iterator[Counterfactual]:
        for number in todo:
            yield from self.search.results(self._session(number), [None])
            del self._sessions[number]

    def _session(self, number: int) -> Session:
        if number not in self._sessions:
            data = self.subject.graphs[number]
            try:
                made = Session.of(self.subject.model, data, task="graph", number=number, **self.settings)
            except ButforError as problem:
                raise type(problem)(f"graph {number}: {problem}") from problem
            self._sessions[number] = made
        return self._sessions[number]


Job = WithinGraph | WholeGraphs
