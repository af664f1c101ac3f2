"""From a model and a graph to verified counterfactuals: the way of the data, in one place."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
import torch
import torch_geometric
from tqdm import tqdm

from butfor.counterfactual import Counterfactual, Prediction, Status, names_of
from butfor.edits import EditSpace
from butfor.errors import InputError
from butfor.goal import Goal
from butfor.graph import Graph
from butfor.methods import BatchMethod, Exact, Method
from butfor.models import fingerprint
from butfor.posing import Poser
from butfor.predictor import Predictor
from butfor.problem import Budget, Problem, Proposal
from butfor.report.scene import Scene
from butfor.verify import TOGETHER, verify, verify_together
from butfor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor, nn
    from torch_geometric.data import Data

__all__ = ["Explainer", "explain"]

# Edge columns of the neighbourhoods that are searched together: bounds the memory of a batch.
BATCH_COLUMNS = 400_000

# Seconds after which what was found is verified and handed over.
SOON = 0.5

# How often a search is begun anew because the whole graph refuted what it found.
RETRIES = 3


@overload
def explain(
    model: nn.Module,
    data: Data,
    target: int,
    method: Method = ...,
    *,
    goal: Goal = ...,
    space: EditSpace = ...,
    budget: Budget = ...,
    directed: bool | None = ...,
    seed: int = ...,
    progress: bool = ...,
) -> Counterfactual: ...


@overload
def explain(
    model: nn.Module,
    data: Data,
    target: Iterable[int] | Tensor,
    method: Method = ...,
    *,
    goal: Goal = ...,
    space: EditSpace = ...,
    budget: Budget = ...,
    directed: bool | None = ...,
    seed: int = ...,
    progress: bool = ...,
) -> list[Counterfactual]: ...


def explain(
    model: nn.Module,
    data: Data,
    target: int | Iterable[int] | Tensor,
    method: Method | None = None,
    *,
    goal: Goal | None = None,
    space: EditSpace | None = None,
    budget: Budget | None = None,
    directed: bool | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Counterfactual | list[Counterfactual]:
    """Which edges, but for which the model would have predicted something else?

    Args:
        model: a node classifier whose ``forward`` takes ``x`` and ``edge_index``.
        data: the graph.
        target: a node, or several; a boolean mask or an index tensor will do.
        method: how to search; `Exact` unless given.
        goal: what counts as something else; any other class unless given.
        space: which edges may go, at what cost; all of them, at 1, unless given.
        budget: what may be spent on each target.
        directed: whether the graph is directed; found out unless given.
        seed: for methods that draw random numbers.
        progress: show a progress bar on standard error, where that is a terminal.

    Returns:
        One result for one node; for several, a list in their order.

    Raises:
        GraphError: the graph is malformed.
        ModelError: the model does not fit the graph or the method.
        InputError: a node is not in the graph, or an argument makes no sense.

    Example:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> model, training = butfor.models.trained_gcn(data)
        >>> print(butfor.explain(model, data, 600))
    """
    explainer = Explainer.of(
        model, data, method=method, goal=goal, space=space, budget=budget, directed=directed, seed=seed
    )
    if isinstance(target, (torch.Tensor, np.ndarray)) and not target.ndim:
        target = int(target)
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool):
        return next(explainer.stream([int(target)]))[1]
    if not isinstance(target, Iterable):
        raise InputError(f"{target!r} is not a node; give a whole number, several of them, or a mask")
    nodes = _node_list(target, explainer.graph.num_nodes)
    results: dict[int, Counterfactual] = {}
    for number, result in _shown(explainer.stream(nodes), len(nodes), progress):
        results[number] = result
    return [results[number] for number in range(len(nodes))]


@dataclass(frozen=True, eq=False)
class _Solved:
    """A proposal that waits for its verification."""

    number: int
    problem: Problem
    proposal: Proposal
    seconds: float


@dataclass(frozen=True, eq=False)
class Explainer:
    """A model and a graph made ready once, to explain any number of targets as they are needed."""

    graph: Graph
    predictor: Predictor
    method: Method
    budget: Budget
    seed: int
    scene: Scene
    poser: Poser

    @classmethod
    def of(
        cls,
        model: nn.Module,
        data: Data,
        *,
        method: Method | None = None,
        goal: Goal | None = None,
        space: EditSpace | None = None,
        budget: Budget | None = None,
        directed: bool | None = None,
        seed: int = 0,
    ) -> Explainer:
        """Check everything that can be checked before the first target."""
        if method is not None and not isinstance(method, Method):
            raise InputError(f"method is {method!r}; give a method such as butfor.Exact()")
        graph = Graph.of(data, directed)
        predictor = Predictor.of(model, graph)
        goal, space = goal or Goal(), space or EditSpace()
        goal.check(predictor.num_classes)
        space.check(graph)
        scene = Scene.of_logits(graph, predictor.logits)
        poser = Poser(graph, predictor, goal, space, seed)
        return cls(graph, predictor, method or Exact(), budget or Budget(), seed, scene, poser)

    def stream(self, nodes: Iterable[int]) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its node in ``nodes``."""
        nodes = [self.graph.check_node(node) for node in nodes]
        self._check_open(nodes)
        last = time.monotonic()
        solved: list[_Solved] = []
        try:
            for numbers, problems in self._batches(nodes):
                for position, proposal in self._solve(problems):
                    now = time.monotonic()
                    solved.append(_Solved(numbers[position], problems[position], proposal, now - last))
                    last = now
                    if len(solved) == TOGETHER or sum(one.seconds for one in solved) > SOON:
                        yield from self._verified(solved)
                        solved = []
                        last = time.monotonic()
        except (Exception, KeyboardInterrupt):
            # What had been found is not lost with what comes after it.
            yield from self._verified(solved)
            raise
        yield from self._verified(solved)

    def _check_open(self, nodes: Sequence[int]) -> None:
        """Refuse nodes that are predicted as wanted already: there is nothing to explain."""
        wanted = self.poser.goal.wanted
        already = [node for node in nodes if int(self.scene.classes[node]) == wanted]
        if already:
            raise InputError(
                f"class {wanted} ('{self.scene.class_name(wanted or 0)}') is wanted, but {len(already)} of the "
                f"{len(nodes)} nodes are predicted so already (the first is node {already[0]}); leave them out"
            )

    @cached_property
    def space_id(self) -> str:
        """The fingerprint of what may be edited."""
        return self.poser.space.fingerprint(self.graph.directed)

    @cached_property
    def graph_id(self) -> str:
        """The graph's fingerprint."""
        return self.graph.fingerprint()

    @cached_property
    def model_id(self) -> str:
        """The model's fingerprint."""
        return fingerprint(self.predictor.model)

    def _batches(self, nodes: Sequence[int]) -> Iterator[tuple[list[int], list[Problem]]]:
        """Problems to solve together: one oracle, and few enough that they fit in memory."""
        most = len(nodes) if isinstance(self.method, BatchMethod) else TOGETHER
        numbers: list[int] = []
        problems: list[Problem] = []
        columns = 0
        for number, node in enumerate(nodes):
            if number % TOGETHER == 0:
                self.poser.look_ahead(nodes[number : number + TOGETHER], BATCH_COLUMNS)
            try:
                problem = self.poser.pose(node)
            except Exception:
                # What was posed before is not lost with this one.
                if problems:
                    yield numbers, problems
                raise
            if problems and problem.oracle is not problems[0].oracle:
                yield numbers, problems
                numbers, problems, columns = [], [], 0
            numbers.append(number)
            problems.append(problem)
            columns += problem.edits.neighbourhood.num_edges
            if columns >= BATCH_COLUMNS or len(problems) == most:
                yield numbers, problems
                numbers, problems, columns = [], [], 0
        if problems:
            yield numbers, problems

    def _solve(self, problems: list[Problem]) -> Iterator[tuple[int, Proposal]]:
        # Where nothing may be edited there is nothing to search.
        for position, problem in enumerate(problems):
            if not len(problem.edits):
                yield position, Proposal(exhausted=True)
        open_ = [position for position, problem in enumerate(problems) if len(problem.edits)]
        if not isinstance(self.method, BatchMethod):
            for position in open_:
                yield position, self.method.solve(problems[position], self.budget)
        elif open_:
            for number, proposal in self.method.solve_batch([problems[i] for i in open_], self.budget):
                yield open_[number], proposal

    def _verified(self, solved: list[_Solved]) -> Iterator[tuple[int, Counterfactual]]:
        """Results of what was found, each with its number and the seconds it took."""
        start = time.monotonic()
        first = [(one.problem, one.proposal.candidates[0]) for one in solved if one.proposal.candidates]
        verified = iter(verify_together(first))
        shared = (time.monotonic() - start) / max(len(solved), 1)
        for one in solved:
            start = time.monotonic()
            logits = next(verified) if one.proposal.candidates else None
            if logits is not None:
                chosen = one.proposal.candidates[0]
                result = self._result(one.problem, one.proposal, one.proposal.evaluations, chosen, logits)
            else:
                result = self._next_best(one.problem, one.proposal)
            yield one.number, replace(result, seconds=one.seconds + shared + time.monotonic() - start)

    def _next_best(self, problem: Problem, proposal: Proposal) -> Counterfactual:
        """The first candidate that holds on the whole graph after the first did not; then the search goes on."""
        evaluations = proposal.evaluations
        candidates = proposal.candidates[1:]
        for _ in range(RETRIES):
            for chosen in candidates:
                logits = verify(problem, chosen)
                if logits is not None:
                    return self._result(problem, proposal, evaluations, chosen, logits)
            if not proposal.candidates:
                break
            problem = problem.without(proposal.candidates)
            proposal = self.method.solve(problem, self.budget)
            candidates = proposal.candidates
            evaluations += proposal.evaluations
        return self._result(problem, proposal, evaluations)

    def _result(
        self,
        problem: Problem,
        proposal: Proposal,
        evaluations: int,
        chosen: Sequence[int] = (),
        logits: Tensor | None = None,
    ) -> Counterfactual:
        cost = problem.edits.cost(chosen)
        # Rounding apart: sums of the same costs in another order must not turn a proof into a doubt.
        proved = cost <= proposal.lower_bound * (1 + 1e-9)
        if logits is not None:
            status = Status.OPTIMAL if proved else Status.FOUND
        else:
            status = Status.IMPOSSIBLE if proposal.exhausted else Status.UNKNOWN
        near = problem.edits.neighbourhood
        removed = problem.edits.pairs(chosen)
        others = [] if logits is None else [other for other in proposal.alternatives if tuple(other) != tuple(chosen)]
        alternatives = tuple(problem.edits.pairs(other) for other in others if verify(problem, other) is not None)
        all_known = proposal.complete and tuple(chosen) in proposal.candidates[:1] and len(alternatives) == len(others)
        ends = {node for pairs in (removed, *alternatives) for pair in pairs for node in pair}
        return Counterfactual(
            target=problem.target,
            status=status,
            before=self._prediction(problem.logits),
            after=None if logits is None else self._prediction(logits),
            removed_edges=removed,
            cost=cost,
            lower_bound=None if status is Status.IMPOSSIBLE else proposal.lower_bound,
            nodes=near.num_nodes,
            edges=problem.edits.num_links,
            directed=self.graph.directed,
            goal=str(problem.goal),
            method=repr(self.method),
            evaluations=evaluations,
            seed=self.seed,
            space_id=self.space_id,
            graph_id=self.graph_id,
            model_id=self.model_id,
            alternatives=alternatives,
            necessity=_necessity([removed, *alternatives]) if all_known else None,
            note=" ".join(filter(None, [problem.note, proposal.note])),
            names=names_of(self.graph.data, {problem.target, *ends}),
            versions=versions(),
            _scene=self.scene,
        )

    def _prediction(self, logits: Tensor) -> Prediction:
        label = int(logits.argmax())
        return Prediction(label, self.scene.class_name(label), float(logits.softmax(-1)[label]))


def _necessity(sets: Sequence[Sequence[tuple[int, int]]]) -> tuple[tuple[int, int, float], ...]:
    counts = Counter(pair for removed in sets for pair in removed)
    return tuple((u, v, count / len(sets)) for (u, v), count in sorted(counts.items()))


@cache
def versions() -> dict[str, str]:
    """What results are computed with."""
    return {
        "butfor": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }


def _node_list(target: Iterable[int] | Tensor, num_nodes: int) -> list[int]:
    if isinstance(target, (torch.Tensor, np.ndarray)):
        values = torch.as_tensor(target)
        if values.dtype == torch.bool:
            if values.shape != (num_nodes,):
                raise InputError(f"the mask has shape {tuple(values.shape)}, but the graph has {num_nodes} nodes")
            return [int(node) for node in values.nonzero().flatten()]
        target = values.flatten().tolist()
    nodes = list(target)
    for node in nodes:
        if isinstance(node, bool) or not isinstance(node, (int, np.integer)):
            raise InputError(f"{node!r} is not a node; nodes are whole numbers from 0 to {num_nodes - 1}")
    return [int(node) for node in nodes]


def _shown(
    results: Iterator[tuple[int, Counterfactual]], total: int, progress: bool
) -> Iterator[tuple[int, Counterfactual]]:
    """The same results, with a progress bar where one is wanted and standard error is a terminal."""
    yield from tqdm(results, total=total, unit="node", desc="explaining", disable=None if progress else True)
