"""Several graphs, each explained as a whole: one question, whose targets are the numbers of the graphs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.errors import ButforError
from butfor.graph.graph import Graph
from butfor.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import nn
    from torch_geometric.data import Data, HeteroData

    from butfor.methods import Method
    from butfor.problem.budget import Budget
    from butfor.problem.listener import Listener
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Graphs"]


@dataclass(frozen=True, eq=False)
class Graphs:
    """A model and several graphs; each gets a session when its turn comes.

    Attributes:
        model: a classifier of whole graphs.
        graphs: all graphs.
        settings: further arguments of `Session.of`.
        example: the number of any of the graphs that are explained; settings are checked on it.
    """

    model: nn.Module
    graphs: Sequence[Data | HeteroData]
    settings: dict[str, Any] = field(default_factory=dict)
    example: int = 0

    @cached_property
    def first(self) -> Session:
        """The session of the example."""
        return self.session(self.example)

    def stream(
        self,
        targets: Sequence[int],
        method: Method | None = None,
        *,
        budget: Budget | None = None,
        seed: int = 0,
        listener: Listener | None = None,
    ) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its graph in ``targets``."""
        for position, number in enumerate(targets):
            session = self.first if number == self.example else self.session(number)
            for _, result in session.stream([None], method, budget=budget, seed=seed, listener=listener):
                yield position, result

    def costs(self, targets: Sequence[int]) -> NDArray[np.float64]:
        """About what each graph costs: its edges."""
        return np.array([1.0 + self.graphs[number].num_edges for number in targets])

    def failed(self, target: int, method: Method, seed: int, why: str) -> Counterfactual:
        """The result of a graph whose search broke off.

        Raises:
            GraphError: the graph itself is malformed.
        """
        graph = self._graph(target)
        result = self.first.failed(target, method, seed, why)
        return replace(result, graph_id=graph.fingerprint(), directed=graph.directed)

    def bare(self) -> Graphs:
        """The same as it travels to another process."""
        return replace(self)

    def at_home(self, result: Counterfactual) -> Counterfactual:
        """A result that came from another process; it is drawn with ``plot(data, model)``."""
        return result

    def _graph(self, number: int) -> Graph:
        try:
            return Graph.of(self.graphs[number], self.settings.get("directed"))
        except ButforError as problem:
            raise type(problem)(f"graph {number}: {problem}") from problem

    def session(self, number: int) -> Session:
        """The session of one graph.

        Raises:
            ButforError: naming the graph.
        """
        try:
            return Session.of(self.model, self.graphs[number], task="graph", number=number, **self.settings)
        except ButforError as problem:
            raise type(problem)(f"graph {number}: {problem}") from problem
