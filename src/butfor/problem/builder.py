"""Build the problem of a target: find the neighbourhood that gives exactly the whole graph's answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.errors import InputError, ModelError
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.program import NOTHING_CHANGES
from butfor.oracle.registry import fast_oracle
from butfor.predict.locality import are_local
from butfor.predict.truth import logits_after
from butfor.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet
    from butfor.edits.rules import Rules
    from butfor.graph.csr import Flow
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood
    from butfor.oracle.base import Oracle
    from butfor.predict.predictor import Predictor
    from butfor.problem.goal import Goal

    # The edits of targets, and whether nothing outside their neighbourhoods matters to them, where that was tested.
    Prefetched = dict[tuple[int, ...], tuple[Edits, bool | None]]

__all__ = ["MAX_EDGES", "ProblemBuilder", "TooLarge"]

WHOLE_GRAPH = "The model may read more than a neighbourhood, so the whole graph was searched."
NOT_SHOWN = "Nothing shows that the model reads no more than the neighbourhood, so nothing is proved of it."
READS_MORE = (
    "{} seems to read more of the graph than the messages that reach {} within {} hops, and of this graph only that is "
    "read; explain it on a graph in memory, with verify='whole-graph' (butfor.open_graph(...).clone())"
)
MODEL_ITSELF = "Every question ran the model itself, because of {}."


# Where a neighbourhood proves nothing, the whole graph is searched if it has at most this many times its edge columns,
# and this many more.
FEW_TIMES = 4
FEW = 100

# The most edges of a neighbourhood: one of this size is searched in 2 GB (`python -m benchmarks.scale --parts peak`).
MAX_EDGES = 1_000_000


class TooLarge(InputError):
    """A target whose neighbourhood has too many edges to be searched.

    Attributes:
        target: its nodes.
        hops: how far the neighbourhood reaches.
        size: at least how many edges it has.
    """

    def __init__(self, target: tuple[int, ...], hops: int, size: int, max_edges: int) -> None:
        super().__init__(
            f"The neighbourhood of {hops} hops has at least {size:,} edges, more than max_edges={max_edges:,}: give a "
            "larger max_edges if there is memory for it."
        )
        self.target, self.hops, self.size = target, hops, size


@dataclass(frozen=True, eq=False)
class ProblemBuilder:
    """Builds problems about one model on one graph.

    The neighbourhood reaches as many hops as the model passes messages, and one more where layers may normalise by the
    degrees of the last senders (`Predictor.reach`). It must reproduce the target's logits on the whole graph, and keep
    them with noise all around (`butfor.predict.locality`); it is widened until it does, at last to the whole graph. A
    model whose messages cannot be counted is searched on the whole graph from the start. All of this is done for every
    target, whatever was seen of others.

    Scores that stay the same are no proof. Where neither the model's code nor its program shows that nothing else
    matters, the whole graph is searched if it is not much larger; else the neighbourhood is, and nothing is claimed of
    sets that were not made on the whole graph (`Problem.can_prove`).

    Where only receptive fields are read (`Predictor.scope`), these stand for the whole graph, and a model that reads
    more is refused.

    Attributes:
        predictor: the model on the graph.
        goal: what counts as another prediction.
        rules: what may be edited.
        max_edges: a target whose neighbourhood has more edges than this is too large to be searched.
    """

    predictor: Predictor
    goal: Goal
    rules: Rules
    max_edges: int = MAX_EDGES

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.predictor.graph

    @cached_property
    def hops(self) -> int | None:
        """How far neighbourhoods reach at first; None for the whole graph."""
        countable = self.predictor.depth > 0 and self.predictor.flow is not None and self.predictor.task != "graph"
        return self.predictor.reach if countable else None

    def build(self, target: tuple[int, ...], seed: int = 0, prefetched: Prefetched | None = None) -> Problem:
        """The problem of one target: a node, the two of a link, nothing for the whole graph.

        Raises:
            ModelError: not even the whole graph gives the same logits twice; or only receptive fields are read, and
                the model reads more.
            TooLarge: the neighbourhood has more than `max_edges` edges.
        """
        return self._build(target, self.hops, seed, prefetched or {})

    def widen(self, problem: Problem) -> Problem | None:
        """The same problem in a larger neighbourhood; None where none gives the whole graph's logits, or fits."""
        near = problem.edits.neighbourhood
        if near.hops is None or self._reads_fields:
            return None
        try:
            return self._build(near.targets, self._next(near), problem.seed, {})
        except (ModelError, TooLarge):
            return None

    def prefetch(self, targets: Sequence[tuple[int, ...]], most: int) -> Prefetched:
        """Prepare targets whose problems will be built soon: together that takes a fraction of the time.

        Those that come first, as long as at most ``most`` edges have to be looked at.
        """
        prefetched: Prefetched = {}
        if not self.hops or self.predictor.task != "node" or not self.rules.only_deletes:
            return prefetched
        limit, rim = min(most, self.max_edges), not self._reads_fields
        found = self.graph.neighbourhoods(list(targets), self.hops, self._flow, limit, rim=rim)
        edits = [self.rules.edits(near) for near in found]
        for start, end in self._general.pieces(edits):
            piece = edits[start:end]
            keys = [one.neighbourhood.targets for one in piece]
            # What is proved of the first is proved of most others.
            proved = self._fast is not None and self._fast.proves_locality(piece[0])
            local = [None] * len(piece) if proved else self._are_local(piece, self.predictor.intact_logits(keys))
            prefetched |= dict(zip(keys, zip(piece, local, strict=True), strict=True))
        return prefetched

    def _build(self, target: tuple[int, ...], hops: int | None, seed: int, prefetched: Prefetched) -> Problem:
        if target not in prefetched or self._reads_fields:
            self._check_size(target, hops)
        logits = self.predictor.intact_logits([target])[0]
        while True:
            edits, note, known = self._edits(target, hops, prefetched)
            problem = self._asked(edits, logits, known, seed)
            if problem is not None and (problem.can_prove or not self._is_most_of_the_graph(edits.neighbourhood)):
                where = WHOLE_GRAPH if target and hops is None else "" if problem.can_prove else NOT_SHOWN
                notes = filter(None, (where, note, self._why_slow(problem.oracle, edits)))
                return replace(problem, note=" ".join(notes))
            if self._reads_fields:
                name = type(self.predictor.model).__name__
                raise ModelError(READS_MORE.format(name, " and ".join(map(self.graph.node_name, target)), hops))
            if hops is None:
                logits_after(self.predictor, edits, ())  # if it fails on the intact graph, it says why
                name = type(self.predictor.model).__name__
                what = " and ".join(map(self.graph.node_name, target)) if target else "it"
                raise ModelError(
                    f"{name} gives {what} different scores on the same graph; "
                    "a model that draws random numbers in evaluation mode cannot be explained"
                )
            hops = self._next(edits.neighbourhood) if problem is None else None
            self._check_size(target, hops)

    def _asked(self, edits: Edits, logits: Tensor, known: bool | None, seed: int) -> Problem | None:
        """The problem in this neighbourhood; None where no oracle says what the whole graph does."""
        for oracle in self._oracles(edits, logits, known):
            if self._is_trusted(oracle, edits, logits):
                return Problem(self.predictor, oracle, edits, self.goal, logits, self._is_local(oracle, edits), seed)
        return None

    def _is_local(self, oracle: Oracle, edits: Edits) -> bool:
        """Whether the model's code or its program shows that nothing beyond the neighbourhood matters.

        A run that no edit can change shows it too, though the model itself is asked.
        """
        shows = self._fast if self._fast is not None and self._fast.refusal(edits) else oracle
        return self.predictor.hears_only_messages or shows.proves_locality(edits)

    def _is_most_of_the_graph(self, near: Neighbourhood) -> bool:
        """Whether the whole graph is little more work to search."""
        columns = self.graph.edge_index.shape[1]
        return not self._reads_fields and near.hops is not None and columns <= FEW + FEW_TIMES * near.num_columns

    def _check_size(self, target: tuple[int, ...], hops: int | None) -> None:
        """Refuse a target whose neighbourhood would be too large, before it is built."""
        if hops is None:
            return
        if self._reads_fields:
            hops = max(hops, self.predictor.depth + 1)
        size = self.graph.size(target, hops, self._flow, self.max_edges)
        if size > self.max_edges:
            raise TooLarge(target, hops, size, self.max_edges)

    @property
    def _reads_fields(self) -> bool:
        return self.predictor.scope == "receptive-field"

    def _why_slow(self, oracle: Oracle, edits: Edits) -> str:
        """A note for the user where the model itself answers every question."""
        fast = {id(self._general): self._fast, id(self._one_at_a_time): self._fast_alone}.get(id(oracle))
        reason = "" if fast is None else fast.refusal(edits)
        return MODEL_ITSELF.format(reason) if reason and reason != NOTHING_CHANGES else ""

    def _next(self, near: Neighbourhood) -> int | None:
        """How far to reach where this neighbourhood was too small: twice as far, at last the whole graph."""
        assert near.hops is not None
        wider = 2 * near.hops
        return None if near.num_nodes == self.graph.num_nodes or wider > self.graph.num_nodes else wider

    @property
    def _flow(self) -> Flow:
        return self.predictor.flow or "source_to_target"

    def _edits(
        self, target: tuple[int, ...], hops: int | None, prefetched: Prefetched
    ) -> tuple[Edits, str, bool | None]:
        """The edits of a target, a note for the user, and whether nothing outside matters, if that is known."""
        if hops == self.hops and target in prefetched:
            edits, local = prefetched.pop(target)
            return edits, "", local
        rim = not self._reads_fields
        near, note = self.graph.neighbourhood(target, hops, self._flow, rim=rim), ""
        if self.rules.only_deletes:
            edits = self.rules.edits(near)
        else:
            # What is near enough to be joined or changed may lie further away than the model sees.
            wide = None if hops is None else max(hops, self.rules.farthest)
            around = near if wide == hops else self.graph.neighbourhood(target, wide, self._flow, rim=rim)
            joins, note = self.rules.joins(around)
            near = self.graph.neighbourhood(target, hops, self._flow, joins, rim=rim) if joins else near
            edits = self.rules.edits(near, around, joins)
        return edits, note, None

    def _are_local(self, asked: Sequence[Edits], logits: Tensor) -> list[bool]:
        """Whether nothing outside each neighbourhood matters to its target, nor what stands beside it in a batch."""
        return are_local(self.predictor, asked, list(logits)) if self.predictor.can_batch else [False] * len(asked)

    def _oracles(self, edits: Edits, logits: Tensor, local: bool | None) -> Iterator[Oracle]:
        """The oracles that may answer, the quickest first; ``local`` is whether nothing outside matters, if known.

        A node or link that is searched on the whole graph may depend on all of it: edited copies must not share runs.
        """
        fast, whole = self._fast, edits.neighbourhood.hops is None
        fast = None if fast is None or fast.refusal(edits) else fast
        if fast is not None and fast.sees_beyond(edits):
            return
        if fast is not None and fast.proves_locality(edits):
            yield fast
        if self._are_local([edits], logits[None])[0] if local is None else local:
            if fast is not None:
                yield fast
            if not whole or self.predictor.call.wants_batch:
                yield self._general
        if whole:
            if self._fast_alone is not None and not self._fast_alone.refusal(edits):
                yield self._fast_alone
            yield self._one_at_a_time

    @cached_property
    def _general(self) -> ModelOracle:
        return ModelOracle(self.predictor)

    @cached_property
    def _fast(self) -> Oracle | None:
        return fast_oracle(self._general)

    @cached_property
    def _fast_alone(self) -> Oracle | None:
        return fast_oracle(self._one_at_a_time)

    @cached_property
    def _one_at_a_time(self) -> ModelOracle:
        return ModelOracle(self.predictor, can_batch=False)

    def _is_trusted(self, oracle: Oracle, edits: Edits, logits: Tensor) -> bool:
        """Whether the oracle agrees with the whole graph, and the model itself does on the neighbourhood.

        A program does what the model did once. Where that does not show that nothing else matters, the model must do
        it on edited copies too.
        """
        whole = edits.neighbourhood.hops is None
        shown = whole or oracle.proves_locality(edits) or oracle is self._general
        return self._agrees(oracle, edits, logits) and (shown or self._agrees(self._general, edits, logits))

    def _agrees(self, oracle: Oracle, edits: Edits, logits: Tensor) -> bool:
        """Whether the oracle says of the intact neighbourhood what the model says of the whole graph.

        Sample edit sets are asked in the same batch and must get the answers that they get alone; where the layers
        guarantee that, it is skipped.
        """
        sets: list[EditSet] = [np.arange(0), *(() if oracle.proves_locality(edits) else edits.sample_sets())]
        truths = [logits]
        try:
            answers = oracle.logits([(edits, pack(sets))])[0]
            if edits.neighbourhood.hops is None:
                truths += [logits_after(self.predictor, edits, chosen) for chosen in sets[1:]]
            elif oracle is self._general:
                truths += [oracle.logits([(edits, pack([chosen]))])[0][0] for chosen in sets[1:]]
        except ModelError:
            # A model made for this very graph, with an embedding of each node say, fails on any other.
            return False
        return all(map(self.predictor.same_logits, answers, truths))
