"""From a model and a graph to verified counterfactuals: the way of the data, in one place."""

from __future__ import annotations

import platform
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import torch
import torch_geometric

from butfor.counterfactual import Counterfactual, Prediction, Status, names_of
from butfor.edits import Addition, Change, Deletion
from butfor.errors import InputError
from butfor.goal import Goal
from butfor.graph import Graph
from butfor.methods import BatchMethod, Exact, Method
from butfor.models import fingerprint
from butfor.posing import Poser
from butfor.predictor import Predictor
from butfor.problem import Budget, Problem, Proposal
from butfor.report.scene import Scene
from butfor.space import EditSpace
from butfor.targets import key_of
from butfor.verify import TOGETHER, verify, verify_together
from butfor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor, nn
    from torch_geometric.data import Data, HeteroData

    from butfor.edits import Edit
    from butfor.predictor import Task
    from butfor.targets import Target

__all__ = ["Explainer"]

# Edge columns of the neighbourhoods that are searched together: bounds the memory of a batch.
BATCH_COLUMNS = 400_000

# Seconds after which what was found is verified and handed over.
SOON = 0.5

# How often a search is begun anew because the whole graph refuted what it found.
RETRIES = 3


@dataclass(frozen=True, eq=False)
class _Solved:
    """A proposal that waits for its verification."""

    number: int
    problem: Problem
    proposal: Proposal
    seconds: float


@dataclass(frozen=True, eq=False)
class Explainer:
    """A model and a graph made ready once, to explain any number of targets as they are needed.

    ``number`` is what a whole graph is called in its result.
    """

    graph: Graph
    predictor: Predictor
    method: Method
    budget: Budget
    seed: int
    scene: Scene
    poser: Poser
    number: int = 0

    @classmethod
    def of(
        cls,
        model: nn.Module,
        data: Data | HeteroData,
        *,
        task: Task = "node",
        node_type: str | None = None,
        method: Method | None = None,
        goal: Goal | None = None,
        space: EditSpace | None = None,
        budget: Budget | None = None,
        directed: bool | None = None,
        probabilities: bool | None = None,
        seed: int = 0,
        number: int = 0,
    ) -> Explainer:
        """Check everything that can be checked before the first target."""
        if method is not None and not isinstance(method, Method):
            raise InputError(f"method is {method!r}; give a method such as butfor.Exact()")
        for name, value, kind in (("goal", goal, Goal), ("space", space, EditSpace), ("budget", budget, Budget)):
            if value is not None and not isinstance(value, kind):
                raise InputError(f"{name} is {value!r}; give a butfor.{kind.__name__}")
        graph = Graph.of(data, directed)
        goal, space = goal or Goal(), space or EditSpace()
        predictor = Predictor.of(
            model, graph, task, node_type=node_type, threshold=goal.threshold, probabilities=probabilities
        )
        goal.check(predictor.num_classes)
        space.check(graph)
        space.check_fields(graph, [name for name in predictor.fields if name in graph.edge_fields()])
        scene = Scene.of_predictor(predictor)
        poser = Poser(graph, predictor, goal, space, seed)
        return cls(graph, predictor, method or Exact(), budget or Budget(), seed, scene, poser, number)

    def one(self, target: Target) -> Counterfactual:
        """The result for one target."""
        return next(self.stream([target]))[1]

    def stream(self, targets: Iterable[Target]) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its target in ``targets``."""
        nodes = [key_of(target, self.graph, self.predictor.node_type) for target in targets]
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
                        last = time.monotonic()
            yield from self._verified(solved)
        except (Exception, KeyboardInterrupt):
            # What had been found is not lost with what comes after it.
            yield from self._verified(solved)
            raise

    def _check_open(self, targets: Sequence[tuple[int, ...]]) -> None:
        """Refuse targets that are predicted as wanted already: there is nothing to explain."""
        wanted = self.poser.goal.wanted
        if wanted is None or not targets:
            return
        scores = self.predictor.intact(targets)
        reached = self.poser.goal.judge(scores, scores.argmax(1).cpu().numpy())[1]
        already = [target for target, done in zip(targets, reached, strict=True) if done]
        if already:
            task = self.predictor.task
            which = f" (the first is {task} {' '.join(map(str, already[0] or [self.number]))})"
            raise InputError(
                f"class {wanted} ('{self.scene.class_name(wanted)}') is wanted, but {len(already)} of the "
                f"{len(targets)} {task}s are predicted so already{which}; leave them out"
            )

    @cached_property
    def space_id(self) -> str:
        """The fingerprint of what may be edited."""
        return self.poser.space.fingerprint(self.graph)

    @cached_property
    def graph_id(self) -> str:
        """The graph's fingerprint."""
        return self.graph.fingerprint()

    @cached_property
    def model_id(self) -> str:
        """The model's fingerprint."""
        return fingerprint(self.predictor.model)

    def _batches(self, nodes: Sequence[tuple[int, ...]]) -> Iterator[tuple[list[int], list[Problem]]]:
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
        """Results of what was found, each with its number and the seconds it took; they are taken off the list."""
        start = time.monotonic()
        first = [(one.problem, one.proposal.candidates[0]) for one in solved if one.proposal.candidates]
        verified = iter(verify_together(first))
        shared = (time.monotonic() - start) / max(len(solved), 1)
        for one in list(solved):
            start = time.monotonic()
            logits = next(verified) if one.proposal.candidates else None
            if logits is not None:
                chosen = one.proposal.candidates[0]
                result = self._result(one.problem, one.proposal, one.proposal.evaluations, chosen, logits)
            else:
                result = self._next_best(one.problem, one.proposal)
            solved.remove(one)
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
        proved = cost <= proposal.lower_bound + problem.edits.rounding(cost)
        if logits is not None:
            status = Status.OPTIMAL if proved else Status.FOUND
        else:
            status = Status.IMPOSSIBLE if proposal.exhausted else Status.UNKNOWN
        near = problem.edits.neighbourhood
        edits = problem.edits.records(chosen)
        others = [] if logits is None else [other for other in proposal.alternatives if tuple(other) != tuple(chosen)]
        alternatives = tuple(problem.edits.records(other) for other in others if verify(problem, other) is not None)
        all_known = proposal.complete and tuple(chosen) in proposal.candidates[:1] and len(alternatives) == len(others)
        named = {node for some in (edits, *alternatives) for edit in some for node in _nodes(edit)}
        return Counterfactual(
            target=self._target(problem.target),
            status=status,
            before=self._prediction(problem.logits),
            after=None if logits is None else self._prediction(logits),
            edits=edits,
            cost=cost,
            lower_bound=None if status is Status.IMPOSSIBLE else proposal.lower_bound,
            task=self.predictor.task,
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
            necessity=_necessity([edits, *alternatives]) if all_known else None,
            node_type=self.predictor.node_type,
            note=" ".join(filter(None, [problem.note, proposal.note])),
            names=names_of(self.graph.data, {*problem.target, *named}),
            versions=versions(),
            _scene=self.scene,
        )

    def _target(self, nodes: tuple[int, ...]) -> int | tuple[int, int]:
        """What a target is called in its result."""
        if self.predictor.task == "graph":
            return self.number
        if self.predictor.task == "link":
            return nodes[0], nodes[1]
        return nodes[0] if self.graph.types is None else self.graph.types.local(nodes[0])[1]

    def _prediction(self, logits: Tensor) -> Prediction:
        label, threshold = int(logits.argmax()), self.predictor.threshold
        name = self.scene.class_name(label)
        if threshold is not None:
            return Prediction(label, name, None, float(logits[1]) + threshold)
        return Prediction(label, name, float(logits.softmax(-1)[label]))


def _nodes(edit: Edit) -> tuple[int, ...]:
    return (edit.node,) if isinstance(edit, Change) else (edit.source, edit.target)


def _necessity(sets: Sequence[Sequence[Edit]]) -> tuple[tuple[Edit, float], ...]:
    counts = Counter(edit for edits in sets for edit in edits)
    ordered = sorted(counts, key=lambda edit: ([Deletion, Addition, Change].index(type(edit)), str(edit.plain)))
    return tuple((edit, counts[edit] / len(sets)) for edit in ordered)


@cache
def versions() -> dict[str, str]:
    """What results are computed with."""
    return {
        "butfor": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }
