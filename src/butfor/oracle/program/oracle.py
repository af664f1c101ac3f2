"""A fast oracle for any model that can be traced: its run as a program, of which an edit recomputes a few rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.oracle.extending import ExtendingOracle
from butfor.oracle.program.bounding.owners import TooLarge
from butfor.oracle.program.bounding.plain.sieve import PlainBounding, PlainSieve
from butfor.oracle.program.bounding.sieve import Bounding, ProgramSieve
from butfor.oracle.program.build import TOO_SMALL, WholeProgram, build
from butfor.oracle.program.kernels.changes import extend
from butfor.oracle.program.program import NothingChanges, Program, Refused
from butfor.oracle.program.references import recorded_at_other_sizes
from butfor.oracle.program.relaxation import ProgramRelaxation
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.oracle.base import Sieve
    from butfor.oracle.extending import Extend
    from butfor.oracle.general import ModelOracle
    from butfor.oracle.program.trace import Trace
    from butfor.oracle.relaxation import Relaxation

__all__ = ["ProgramOracle", "program_oracle"]

# Numbers that one program may hold: bounds the memory.
MAX_NUMBERS = 40_000_000

# From this many targets on it pays to record the model on the whole graph, once for all of them.
MANY_TARGETS = 3

# How many parts of that program are compared with the model, where the code shows that it does the same for all nodes.
CHECKED_PARTS = 3


@dataclass(frozen=True, eq=False)
class ProgramOracle(ExtendingOracle):
    """Values and gradients by the traced program; the general oracle decides what is nearly a tie."""

    prefix_work = 8
    max_numbers: int = MAX_NUMBERS
    _programs: WeakKeyDictionary[Edits, Program | Refused] = field(default_factory=WeakKeyDictionary, repr=False)
    _references: list[Trace] = field(default_factory=list, repr=False)
    _asked: set[tuple[int, ...]] = field(default_factory=set, repr=False)
    _checked: list[Edits] = field(default_factory=list, repr=False)

    def refusal(self, edits: Edits) -> str:
        """What about the model cannot be traced on this neighbourhood; empty where it can."""
        found = self._found(edits)
        return found.reason if isinstance(found, Refused) else ""

    def _compiled(self, edits: Edits, count: int) -> tuple[NDArray[Any], Extend]:
        program = self._program(edits)
        layout = program.layout
        out = np.empty((count, int(layout.flat.width[layout.output])))

        def run(
            thread: int, prefixes: NDArray[np.int64], candidates: NDArray[np.int64], pointers: NDArray[np.int64]
        ) -> None:
            extend(program.bound(thread), layout.output, layout.row, prefixes, candidates, pointers, out)

        return out, run

    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """By the programs."""
        return ProgramRelaxation([(edits, self._program(edits)) for edits in asked])

    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """An edit matters if it toggles an edge that leads to a row which the target needs, or sets a feature."""
        program = self._program(edits)
        layout, edited = program.layout, program.edited
        relevant = np.diff(edited.change_pointers) > 0
        owner = np.repeat(np.arange(len(edits)), np.diff(edited.pointers))
        relevant[owner[layout.reads[edited.columns]]] = True
        return relevant

    # Bounds.

    def _bounding(self, edits: Edits, pairs: NDArray[np.float64], every: bool) -> Bounding | None:
        """The program of a target for bounds; None where it would be too large."""
        program = self._program(edits)
        key = every, pairs.tobytes()
        if key not in program.bounding:
            layout = program.layout
            edit_of, count = _edit_of(program, len(edits)), len(edits)
            try:
                bounding = Bounding(
                    program.out, layout.row, pairs, every, layout.present, edit_of, count, program.changes
                )
            except TooLarge:
                bounding = None
            program.bounding[key] = bounding
        return program.bounding[key]

    def _plain(self, edits: Edits, pairs: NDArray[np.float64], every: bool) -> PlainBounding | None:
        """The program of a target for plain bounds; None where these do not know what it does."""
        program = self._program(edits)
        key = every, pairs.tobytes()
        if key not in program.plain:
            layout, edit_of = program.layout, _edit_of(program, len(edits))
            plain = PlainBounding.of(program.out, layout.row, pairs, every, layout.present, edit_of, len(edits))
            program.plain[key] = plain
        return program.plain[key]

    def margin_bound(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        removed: Sequence[int],
        free: NDArray[np.int64],
        more: int,
        every: bool = True,
        enough: float = 0.0,
    ) -> float | None:
        """By intervals for all values of the program: plain ones where these say enough."""
        plain = self._plain(edits, pairs, every)
        if plain is not None:
            bound = plain.least_margin(removed, free, more)
            if bound > enough or plain.tables.always_has_losses:
                return bound
        bounding = self._bounding(edits, pairs, every)
        return None if bounding is None else bounding.least_margin(removed, free, more)

    def sieve(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        every: bool,
        order: NDArray[np.int64],
        size: int,
        limit: float,
        needed: float,
    ) -> Sieve | None:
        """By a compiled search that bounds every branch."""
        plain, costs = self._plain(edits, pairs, every), edits.costs[order]
        if plain is not None:
            tight = partial(self._bounding, edits, pairs, every)
            return PlainSieve(plain, tight, order, costs, size, limit, needed)
        bounding = self._bounding(edits, pairs, every)
        return None if bounding is None else ProgramSieve(bounding, order, costs, size, limit, needed)

    def _is_right(self, edits: Edits) -> bool:
        """Whether program and model agree on edited graphs, side by side, and where all edits are made also alone.

        Not alone where the code shows that the size of the graph makes no difference.
        """
        sets = pack([*edits.sample_sets(), np.arange(0)])
        mine = self._values(edits, sets, np.full(len(sets), -1), np.arange(len(sets) + 1))
        truth, same = self.general.logits([(edits, sets)])[0], self.general.predictor.same_logits
        if not self.general.predictor.hears_only_messages:
            truth = torch.cat([truth, self.general.logits([(edits, sets[:1])])[0]])
            mine = np.concatenate([mine, mine[:1]])
        return all(map(same, torch.from_numpy(mine).to(truth), truth))

    def proves_locality(self, edits: Edits) -> bool:
        """Whether a row follows from the edges that lead to it, all of these are inside, and sizes play no part.

        Runs on graphs of other sizes must have done the same to every row (`Trace.difference`).
        """
        found = self._found(edits)
        if found.beyond or found.trace is None:
            return False
        if found.is_local is None:
            found.is_local = self._is_same_at_any_size(edits, found.trace)
        return found.is_local

    def sees_beyond(self, edits: Edits) -> bool:
        """Whether the target hears of edges outside the neighbourhood, or of how large the graph is."""
        program = self._found(edits)
        if isinstance(program, Refused) or edits.neighbourhood.hops is None:
            return False
        if program.beyond or self.proves_locality(edits):
            return program.beyond == TOO_SMALL
        trace = program.trace
        return any(trace.sizes_differ(other) and trace.difference(other) for other in self._references)

    def _is_same_at_any_size(self, edits: Edits, trace: Trace) -> bool:
        """Whether the model did the same to every row on this neighbourhood, on two of them, and on the whole graph.

        Where the code shows that it does so anywhere, it is not run for that.
        """
        if self.general.predictor.hears_only_messages:
            return True
        if not any(other.sizes_differ(trace) for other in self._references):
            try:
                self._references.extend(recorded_at_other_sizes(self.general.predictor, edits, self.max_numbers))
            except Untraceable:
                return False
        return any(trace.sizes_differ(other) for other in self._references) and not any(
            trace.difference(other) for other in self._references
        )

    def _forget(self, latest: Edits) -> None:
        """Let go of the oldest programs where all together hold too many numbers; they can be made again."""
        held = [(edits, one.layout.numbers) for edits, one in self._programs.items() if isinstance(one, Program)]
        total = sum(numbers for _, numbers in held)
        for edits, numbers in held:
            if total > self.max_numbers and edits is not latest:
                del self._programs[edits]
                total -= numbers

    def _program(self, edits: Edits) -> Program:
        found = self._found(edits)
        assert isinstance(found, Program)
        return found

    @cached_property
    def _whole(self) -> WholeProgram | None:
        """The program of the whole graph, where there is one and the code shows that the model is the same anywhere."""
        predictor = self.general.predictor
        if predictor.task != "node" or predictor.flow is None or not predictor.hears_only_messages:
            return None
        if predictor.scope == "receptive-field":
            return None
        try:
            return WholeProgram.of(predictor, predictor.flow, self.max_numbers)
        except Untraceable:
            return None

    def _made(self, edits: Edits) -> Program:
        """A program for these edits: a part of that of the whole graph where many targets are asked about."""
        near = edits.neighbourhood
        self._asked.add(near.targets)
        if edits.only_deletes and near.hops is not None and len(self._asked) >= MANY_TARGETS and self._whole:
            # Where it does not serve, the neighbourhood itself shows why.
            with suppress(Untraceable):
                return self._whole.of_target(edits, self.max_numbers)
        return build(self.general.predictor, edits, self.max_numbers)

    def _is_known_to_be_right(self, edits: Edits) -> bool:
        """Whether it is part of a program of which enough other parts were compared with the model."""
        program = self._programs[edits]
        if isinstance(program, Refused) or not program.is_part:
            return False
        if len(self._checked) >= CHECKED_PARTS:
            return True
        self._checked.append(edits)
        return False

    def _found(self, edits: Edits) -> Program | Refused:
        """The program of a target, or why there is none."""
        if edits not in self._programs:
            try:
                self._programs[edits] = self._made(edits)
                self._forget(edits)
                if not self._is_known_to_be_right(edits) and not self._is_right(edits):
                    raise Untraceable("edited graphs on which program and model differ")
            except NothingChanges as problem:
                self._programs[edits] = Refused(str(problem), problem.trace, problem.beyond)
            except Untraceable as problem:
                self._programs[edits] = Refused(str(problem))
            except Exception as problem:
                # Anyone's code may do what nobody has thought of; then the model itself answers.
                self._programs[edits] = Refused(f"a run that cannot be followed ({type(problem).__name__}: {problem})")
        return self._programs[edits]


def _edit_of(program: Program, num_edits: int) -> NDArray[np.int64]:
    """The edit that toggles each edge column; -1 for none."""
    edited, edit_of = program.edited, np.full(len(program.layout.present), -1)
    edit_of[edited.columns] = np.repeat(np.arange(num_edits), np.diff(edited.pointers))
    return edit_of


def program_oracle(general: ModelOracle) -> ProgramOracle:
    """Any model may be traced; what cannot be is refused for each target, with the reason."""
    return ProgramOracle(general)
