"""A fast oracle for any model that can be traced: its run as a program, of which an edit recomputes a few rows."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.base import Oracle, Relaxation
from butfor.oracle.program.layout import Layout
from butfor.oracle.program.lowering import Lowering
from butfor.oracle.program.relaxation import ProgramRelaxation
from butfor.oracle.program.rewriting import simplify
from butfor.oracle.program.steps import Space
from butfor.oracle.program.trace import Untraceable, record
from butfor.oracle.ties import nearly_tied
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.oracle.general import ModelOracle
    from butfor.oracle.program.kernels import Edited, State
    from butfor.predict.inputs import Inputs

__all__ = ["ProgramOracle", "program_oracle"]

# Edit sets that make up for the start of a thread, and how many of them a prefix is as much work as.
WORTH_A_THREAD = 4096
A_PREFIX = 8

# Numbers that one program may hold: bounds the memory.
MAX_NUMBERS = 40_000_000


@dataclass(eq=False)
class Program:
    """What is known of the program of one target: its layout and edits, or why there is none."""

    layout: Layout | None
    edited: Edited | None
    reason: str = ""
    states: list[State] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ProgramOracle(Oracle):
    """Values and gradients by the traced program; the general oracle decides what is nearly a tie."""

    general: ModelOracle
    max_numbers: int = MAX_NUMBERS
    _programs: WeakKeyDictionary[Edits, Program] = field(default_factory=WeakKeyDictionary, repr=False)

    def refusal(self, edits: Edits) -> str:
        """What about the model cannot be traced on this neighbourhood; empty where it can."""
        return self._program(edits).reason

    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """Each set is a prefix, and nothing after it."""
        answers = []
        for edits, sets in asked:
            rows = pack(sets)
            answers.append(self.extend(edits, rows, np.full(len(rows), -1), np.arange(len(rows) + 1)))
        return answers

    def extend(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Tensor:
        """Only what each further edit changes is computed anew."""
        out = self._values(edits, prefixes, candidates, pointers, threads)
        logits = torch.from_numpy(out).to(self.general.predictor.logits)
        close = nearly_tied(out)
        if len(close):
            rows = np.searchsorted(pointers, close, side="right") - 1
            sets = np.concatenate([prefixes[rows], candidates[close, None]], axis=1)
            logits[close] = self.general.logits([(edits, sets)])[0]
        return logits

    def _values(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> NDArray[np.float64]:
        from butfor.oracle.program.kernels import extend

        program = self._program(edits)
        layout, edited = program.layout, program.edited
        assert layout is not None
        assert edited is not None
        out = np.empty((len(candidates), int(layout.flat.width[layout.output])))
        parts = min(threads, (len(candidates) + A_PREFIX * len(prefixes)) // WORTH_A_THREAD + 1)
        cuts = np.unique(np.searchsorted(pointers, np.linspace(0, len(candidates), parts + 1)))
        cuts[-1:] = len(prefixes)
        while len(program.states) < max(len(cuts) - 1, 1):
            program.states.append(layout.state())

        def run(part: tuple[int, tuple[int, int]]) -> None:
            number, (first, last) = part
            extend(
                layout.flat, program.states[number], edited, layout.output, layout.row,
                prefixes[first:last], candidates, pointers[first : last + 1], out,
            )  # fmt: skip

        if len(cuts) > 2:
            with ThreadPoolExecutor(len(cuts) - 1) as pool:
                list(pool.map(run, enumerate(pairwise(cuts))))
        else:
            run((0, (0, len(prefixes))))
        return out

    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """By the programs, where edits only delete; else by soft edges."""
        if not all(edits.only_deletes for edits in asked):
            return self.general.relax(asked)
        programs = [self._program(edits) for edits in asked]
        layouts = [(edits, one.layout) for edits, one in zip(asked, programs, strict=True) if one.layout is not None]
        return ProgramRelaxation(layouts) if len(layouts) == len(asked) else None

    def batch_size(self, edits: Edits) -> int:  # noqa: ARG002
        """Any number is answered one by one; this many take a fraction of a second."""
        return 16_384

    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """An edit matters if it toggles an edge that leads to a row which the target needs, or sets a feature."""
        program = self._program(edits)
        layout, edited = program.layout, program.edited
        assert layout is not None
        assert edited is not None
        relevant = np.diff(edited.change_pointers) > 0
        owner = np.repeat(np.arange(len(edits)), np.diff(edited.pointers))
        relevant[owner[layout.reads[edited.columns]]] = True
        return relevant

    def _is_right(self, edits: Edits) -> bool:
        """Whether program and model agree on edited graphs."""
        sets = pack([np.arange(0), *edits.sample_sets()])
        mine = self._values(edits, sets, np.full(len(sets), -1), np.arange(len(sets) + 1))
        truth = self.general.logits([(edits, sets)])[0]
        same = self.general.predictor.same_logits
        return all(map(same, torch.from_numpy(mine).to(truth), truth))

    def _program(self, edits: Edits) -> Program:
        if edits not in self._programs:
            try:
                self._programs[edits] = self._traced(edits)
                if not self._is_right(edits):
                    raise Untraceable("edited graphs on which program and model differ")
            except Untraceable as problem:
                self._programs[edits] = Program(None, None, str(problem))
        return self._programs[edits]

    def _traced(self, edits: Edits) -> Program:
        from butfor.oracle.program.kernels import Edited

        predictor, near = self.general.predictor, edits.neighbourhood
        inputs, columns = _inputs(edits, self.general)
        tensors = {"x": inputs.x, "edge_index": inputs.edge_index, **inputs.fields}
        try:
            # What torch has to say of recording is nothing that a user could act upon.
            with preserved(predictor.model), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trace = record(predictor.model, lambda: predictor.run(inputs), tensors)
        except ModelError as problem:
            if isinstance(problem.__cause__, Untraceable):
                raise problem.__cause__ from None
            raise Untraceable("a neighbourhood on which the model fails") from problem
        lowering = Lowering(trace)
        nodes = Space(near.num_nodes)
        along = lowering.add_edges("edge_index", columns)
        lowering.add_rows("x", nodes, editable=bool(len(edits.changes.edit)))
        for name, tensor in inputs.fields.items():
            if name not in predictor.graph.edge_fields():
                lowering.add_rows(name, nodes)
            elif tensor.is_floating_point():
                lowering.add_rows(name, along)
            else:
                lowering.add_labels(name, columns)
        out = lowering.run().value
        if out.fixed:
            raise Untraceable("an output that no edit can change")
        simplify(out)
        present = np.arange(edits.all_ends.shape[1]) < near.num_columns
        layout = Layout.of(out, 0, present)
        if layout.numbers > self.max_numbers:
            raise Untraceable(f"a program of {layout.numbers:,} numbers")
        owner = np.concatenate([edits.edit_of, np.resize(edits.added.edit, len(edits.new_ends))])
        owned = np.flatnonzero((owner >= 0) & edits.visible)
        order = owned[np.argsort(owner[owned], kind="stable")]
        what = edits.changes
        by = np.argsort(what.edit, kind="stable") if layout.x >= 0 else np.empty(0, np.int64)
        counted = np.arange(len(edits) + 1)
        edited = Edited(
            np.searchsorted(owner[order], counted), order, np.searchsorted(what.edit[by], counted),
            what.node[by], what.feature[by], what.after[by], layout.x,
        )  # fmt: skip
        return Program(layout, edited)


def _inputs(edits: Edits, general: ModelOracle) -> tuple[Inputs, NDArray[np.int64]]:
    """The neighbourhood with all edges that there are or may be; and which of `Edits.all_ends` each column is."""
    near = edits.neighbourhood
    batch = EditedBatch.of([(edits, pack([()]))])
    columns = np.flatnonzero(edits.visible)
    known = np.concatenate([near.columns, np.full(len(edits.new_ends), -1)])
    everything = replace(batch, edge_index=edits.all_ends[:, columns], columns=known[columns])
    return general.predictor.call.inputs(everything), columns


def program_oracle(general: ModelOracle) -> ProgramOracle | None:
    """The oracle for models that may be traced: on the CPU, on graphs of one type, one copy at a time."""
    on_cpu = general.predictor.logits.device.type == "cpu"
    return ProgramOracle(general) if general.graph.types is None and on_cpu else None
