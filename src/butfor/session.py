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

from butfor.checks import check_whole
from butfor.edits.edits import Addition, Change, Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.methods import BatchMethod, Exact, Method
from butfor.models import fingerprint
from butfor.plotting.scene import Scene
from butfor.predict.predictor import Predictor
from butfor.predict.preserved import MODEL_LOCK
from butfor.problem.builder import Poser
from butfor.problem.goal import Goal
from butfor.problem.problem import Budget, Problem, Proposal
from butfor.problem.target import key_of
from butfor.result.counterfactual import Counterfactual, Prediction, Status, names_of
from butfor.result.verify import TOGETHER, Verified, verify, verify_together
from butfor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor, nn
    from torch_geometric.data import Data, HeteroData

    from butfor.edits.edits import Edit, EditSet
    from butfor.predict.predictor import Task
    from butfor.problem.target import Target

__all__ = ["Explainer", "check_settings"]

# Edge columns of the neighbourhoods that are searched together: bounds the memory of a batch.
BATCH_COLUMNS = 400_000

# Seconds after which what was found is verified and handed over.
SOON = 0.5

# How often a search is begun anew because the whole graph refuted what it found.
RETRIES = 3

CONTRADICTS = "The model gave other scores for the same edits when they were verified, so nothing is proved."


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
        check_settings(method, goal, space, budget)
        for name, switch in (("directed", directed), ("probabilities", probabilities)):
            if switch is not None and not isinstance(switch, bool):
                raise InputError(f"{name} is {switch!r}; give True, False or None")
        check_whole(seed, "seed", 0)
        graph = Graph.of(data, directed)
        goal, space = goal or Goal(), space or EditSpace()
        predictor = Predictor.of(
            model, graph, task, node_type=node_type, threshold=goal.threshold, probabilities=probabilities
        )
        scene = Scene.of_predictor(predictor)
        # Names are those of the labels, which links and numbers have none of.
        goal = goal.named(() if task == "link" or goal.threshold is not None else scene.names)
        goal.check(predictor.num_classes)
        space.check(graph)
        space.check_fields(graph, [name for name in predictor.fields if name in graph.edge_fields()])
        poser = Poser(graph, predictor, goal, space, seed)
        return cls(graph, predictor, method or Exact(), budget or Budget(), seed, scene, poser, number)

    def one(self, target: Target) -> Counterfactual:
        """The result for one target."""
        return next(self.stream([target]))[1]

    def stream(self, targets: Iterable[Target]) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its target in ``targets``."""
        nodes = [key_of(target, self.graph, self.predictor.node_type) for target in targets]
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
        with MODEL_LOCK:
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
        # Where nothing may be edited or has to be, there is nothing to search.
        closed = {i for i, problem in enumerate(problems) if problem.reached or not len(problem.edits)}
        for position in closed:
            yield position, Proposal(exhausted=not problems[position].reached)
        open_ = [position for position in range(len(problems)) if position not in closed]
        if not isinstance(self.method, BatchMethod):
            for position in open_:
                yield position, self.method.solve(problems[position], self.budget)
        elif open_:
            for number, proposal in self.method.solve_batch([problems[i] for i in open_], self.budget):
                yield open_[number], proposal

    def _verified(self, solved: list[_Solved]) -> Iterator[tuple[int, Counterfactual]]:
        """Results of what was found, each with its number and the seconds it took; they are taken off the list."""
        start = time.monotonic()
        asked = [(one.problem, chosen) for one in solved for chosen in _to_be_seen(one.problem, one.proposal)]
        verified = iter(verify_together(asked))
        shared = (time.monotonic() - start) / max(len(solved), 1)
        for one in list(solved):
            start = time.monotonic()
            seen = [next(verified) for _ in _to_be_seen(one.problem, one.proposal)]
            result = self._settled(one.problem, one.proposal, seen)
            solved.remove(one)
            yield one.number, replace(result, seconds=one.seconds + shared + time.monotonic() - start)

    def _settled(self, problem: Problem, proposal: Proposal, seen: list[Verified]) -> Counterfactual:
        """The result of a search, after what it rests on was seen on the whole graph.

        Where the model says something else there than the search was told, the neighbourhood was too small: the target
        is searched again in a larger one.
        """
        evaluations, doubted = proposal.evaluations, False
        while not all(one.as_expected for one in seen):
            if proposal.candidates and seen[0].reached and not _proves(problem, proposal):
                break
            wider = self.poser.wider(problem)
            if wider is None:
                doubted = True
                break
            problem = wider
            proposal = self.method.solve(problem, self.budget)
            evaluations += proposal.evaluations
            seen = verify_together([(problem, chosen) for chosen in _to_be_seen(problem, proposal)])
        if proposal.candidates and seen[0].reached:
            proposal = _unproved(proposal) if doubted else proposal
            return self._result(problem, proposal, evaluations, proposal.candidates[0], seen[0].scores)
        return self._next_best(problem, proposal, evaluations, doubted)

    def _next_best(self, problem: Problem, proposal: Proposal, evaluations: int, doubted: bool) -> Counterfactual:
        """The first candidate that holds on the whole graph after the first did not; then the search goes on."""
        candidates = proposal.candidates[1:]
        for _ in range(RETRIES):
            proposal = _unproved(proposal) if doubted else proposal
            for chosen in candidates:
                seen = verify(problem, chosen)
                if seen.reached:
                    proved = proposal if seen.as_expected else _unproved(proposal)
                    return self._result(problem, proved, evaluations, chosen, seen.scores)
            if not proposal.candidates:
                break
            problem = problem.without(proposal.candidates)
            proposal = self.method.solve(problem, self.budget)
            candidates = proposal.candidates
            evaluations += proposal.evaluations
        return self._result(problem, _unproved(proposal) if doubted else proposal, evaluations)

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
        if problem.reached:
            status = Status.REACHED
        elif logits is not None:
            status = Status.OPTIMAL if proved else Status.FOUND
        else:
            status = Status.IMPOSSIBLE if proposal.exhausted else Status.UNKNOWN
        near = problem.edits.neighbourhood
        edits = problem.edits.records(chosen)
        others = [] if logits is None else [other for other in proposal.alternatives if tuple(other) != tuple(chosen)]
        alternatives = tuple(problem.edits.records(other) for other in others if verify(problem, other).reached)
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
            note=" ".join(filter(None, [problem.note, proposal.note, _failed(proposal.failures)])),
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


def check_settings(method: object, goal: object, space: object, budget: object) -> None:
    """Refuse settings of another kind than they must be, where they are given.

    Raises:
        InputError: naming the first of them.
    """
    if method is not None and not isinstance(method, Method):
        raise InputError(f"method is {method!r}; give a method such as butfor.Exact()")
    for name, value, kind in (("goal", goal, Goal), ("space", space, EditSpace), ("budget", budget, Budget)):
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} is {value!r}; give a butfor.{kind.__name__}")


def _proves(problem: Problem, proposal: Proposal) -> bool:
    """Whether a proposal claims to be the best, or that more than the cheapest edit is needed."""
    optimal = any(problem.edits.cost(chosen) <= proposal.lower_bound for chosen in proposal.candidates[:1])
    return proposal.exhausted or optimal or proposal.lower_bound > problem.least_cost


def _unproved(proposal: Proposal) -> Proposal:
    """What is left of a proposal where the model contradicts itself: sets that may reach the goal, and no proof."""
    note = proposal.note if CONTRADICTS in proposal.note else f"{proposal.note} {CONTRADICTS}".strip()
    return replace(proposal, lower_bound=0.0, exhausted=False, complete=False, note=note)


def _to_be_seen(problem: Problem, proposal: Proposal) -> list[EditSet]:
    """What has to be seen on the whole graph before a proposal is believed.

    The best candidate; and, where more is proved than that one edit is needed and it does not follow from the layers
    that the neighbourhood is all that matters, sets that would show if it were not.
    """
    seen: list[EditSet] = list(proposal.candidates[:1])
    trivial = not proposal.exhausted and proposal.lower_bound <= problem.least_cost
    return seen if trivial or problem.oracle.knows_layers else [*seen, *problem.edits.samples()]


def _failed(count: int) -> str:
    if not count:
        return ""
    return f"On {count} of the edited graphs tried the model failed or gave no numbers; it says nothing there."


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
