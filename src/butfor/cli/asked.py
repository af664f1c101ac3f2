"""What is asked: targets of one kind, the run that their results belong to, and the results as they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butfor.cli.nodes import parse_graphs, parse_links, parse_nodes
from butfor.cli.output import progress, stream
from butfor.errors import ButforError, InputError
from butfor.runs import Run
from butfor.runs.store import RunOfGraphs
from butfor.session import Explainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_geometric.data import Data

    from butfor.cli.source import Subject
    from butfor.predict.predictor import Task
    from butfor.problem.target import Pair
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Asked", "Targets", "WholeGraphs", "WithinGraph"]


@dataclass(frozen=True)
class Targets:
    """What the user wants explained, as written; of several graphs or of one."""

    task: Task
    text: str

    @classmethod
    def of(cls, subject: Subject, nodes: str | None, links: str | None, graphs: str | None) -> Targets:
        """From the three flags, of which one may be given; test nodes or test graphs where none is.

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

    def numbers(self, subject: Subject) -> list[int]:
        """The numbers of the graphs that are meant."""
        return parse_graphs(self.text, len(subject.graphs), subject.test)

    def within(self, data: Data) -> list[int] | list[Pair]:
        """The nodes or pairs that are meant."""
        return parse_links(self.text, data) if self.task == "link" else parse_nodes(self.text, data)


@dataclass(frozen=True, eq=False)
class WithinGraph:
    """Nodes or links of one graph."""

    explainer: Explainer
    targets: Sequence[int | Pair]

    @property
    def what(self) -> str:
        """What the targets are."""
        return self.explainer.predictor.task

    @property
    def run(self) -> Run:
        """What the results will have in common."""
        return Run.of(self.explainer)

    def results(self, todo: Sequence[Any], quiet: bool) -> Iterator[Counterfactual]:
        """Results of these targets as they come."""
        return stream(self.explainer, todo, quiet=quiet)


@dataclass(frozen=True, eq=False)
class WholeGraphs:
    """Graphs, each explained as a whole; ``settings`` are those of `Explainer.of`."""

    subject: Subject
    targets: Sequence[int]
    settings: dict[str, Any]
    what: str = "graph"
    _ready: dict[int, Explainer] = field(default_factory=dict)

    @property
    def run(self) -> RunOfGraphs:
        """What the results will have in common."""
        first = Run.of(self._explainer(self.targets[0]))
        return RunOfGraphs(first, self.subject.graphs, self.settings["directed"])

    def results(self, todo: Sequence[Any], quiet: bool) -> Iterator[Counterfactual]:
        """Results of these graphs as they come."""
        return progress(self._each(todo), len(todo), self.what, quiet=quiet)

    def _each(self, todo: Sequence[int]) -> Iterator[Counterfactual]:
        for number in todo:
            yield from stream(self._explainer(number), [None], quiet=True)
            del self._ready[number]

    def _explainer(self, number: int) -> Explainer:
        if number not in self._ready:
            data = self.subject.graphs[number]
            try:
                made = Explainer.of(self.subject.model, data, task="graph", number=number, **self.settings)
            except ButforError as problem:
                raise type(problem)(f"graph {number}: {problem}") from problem
            self._ready[number] = made
        return self._ready[number]


Asked = WithinGraph | WholeGraphs
