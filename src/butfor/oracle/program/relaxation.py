"""The programs of several targets as a smooth function of one weight per edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.relaxation import Relaxation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.oracle.program.layout import Layout
    from butfor.oracle.program.program import Program

    Floats = NDArray[np.floating[Any]]

__all__ = ["ProgramRelaxation"]


class _Soft:
    """One target: which weight each edge column has, and how far features move."""

    def __init__(self, edits: Edits, program: Program) -> None:
        layout, edited = program.layout, program.edited
        self.layout = layout
        owner = np.concatenate([edits.edit_of, edits.new_edit])
        self.owned = np.flatnonzero(owner >= 0)
        self.owner = owner[self.owned]
        self.sign = np.where(self.owned < edits.neighbourhood.num_columns, 1.0, -1.0)
        flat = layout.flat
        self.edit = np.repeat(np.arange(len(edits)), np.diff(edited.change_pointers))
        self.at = flat.start[edited.of] + edited.rows * flat.width[edited.of] + edited.features
        self.step = edited.values - layout.start[self.at]
        self._state, self._slopes = layout.soft_state(), np.zeros(len(layout.start))
        self._read = _read(layout)
        self._last: tuple[tuple[Floats, Floats], Floats] | None = None
        output = layout.output
        self.output = slice(
            int(flat.start[output] + layout.row * flat.width[output]),
            int(flat.start[output] + (layout.row + 1) * flat.width[output]),
        )

    def columns(self, weights: Floats, degrees: Floats) -> Floats:
        """The weights of all edge columns; an edge that may be added is there as far as its edit is made."""
        columns = np.ones((2, len(self.layout.present)))
        for row, all_weights in zip(columns, (weights, degrees), strict=True):
            mine = all_weights[self.owner]
            row[self.owned] = np.where(self.sign > 0, mine, 1 - mine)
        return columns

    def forward(self, weights: Floats, degrees: Floats) -> tuple[Floats, Floats]:
        """All values, and the weights of the edge columns; those of the last call where it was the same."""
        from butfor.oracle.program.kernels.soft import forward

        asked = weights.copy(), degrees.copy()
        if self._last is not None and all(map(np.array_equal, self._last[0], asked)):
            return self._state.base, self._last[1]
        self._last = None
        columns, state = self.columns(weights, degrees), self._state
        state.base[self.at] = self.layout.start[self.at]
        np.add.at(state.base, self.at, (1 - weights[self.edit]) * self.step)
        forward(self.layout.flat, state, columns)
        self._last = asked, columns
        return state.base, columns

    def backward(self, weights: Floats, degrees: Floats, of_scores: Floats) -> tuple[Floats, Floats]:
        """The derivatives with respect to the weights of edits, and to those that degrees are counted with."""
        from butfor.oracle.program.kernels.gradients import backward

        values, columns = self.forward(weights, degrees)
        slopes, found = self._slopes, np.zeros_like(columns)
        slopes[self._read] = 0.0
        slopes[self.output] = of_scores
        backward(self.layout.flat, values, slopes, columns, found)
        of_weights, of_degrees = np.zeros((2, len(weights)))
        np.add.at(of_weights, self.owner, self.sign * found[0, self.owned])
        np.add.at(of_degrees, self.owner, self.sign * found[1, self.owned])
        if len(self.at):
            np.add.at(of_weights, self.edit, -slopes[self.at] * self.step)
        return of_weights, of_degrees


def _read(layout: Layout) -> NDArray[np.int64]:
    """Where all numbers are whose slopes are read: those of rows that can change and the target needs."""
    flat = layout.flat
    changing = np.flatnonzero(flat.first >= 0)
    of = np.repeat(changing, flat.rows[changing])
    rows = np.concatenate([np.arange(count) for count in flat.rows[changing]])
    needed = flat.needed[flat.first[of] + rows]
    of, rows = of[needed], rows[needed]
    begins, widths = flat.start[of] + rows * flat.width[of], flat.width[of]
    places: NDArray[np.int64] = np.arange(widths.sum()) + np.repeat(begins - np.cumsum(widths) + widths, widths)
    return places


class ProgramRelaxation(Relaxation):
    """Soft edges and features, by the compiled program of each target, in double precision."""

    def __init__(self, asked: Sequence[tuple[Edits, Program]]) -> None:
        self.pointers = np.concatenate([[0], np.cumsum([len(edits) for edits, _ in asked])])
        self.targets = [_Soft(edits, program) for edits, program in asked]

    def scores(self, weights: Floats, degrees: Floats) -> Floats:
        """One row of scores for each target."""
        rows = []
        for target, a, b in zip(self.targets, self.pointers, self.pointers[1:], strict=False):
            w, d = (part[a:b].astype(np.float64) for part in (weights, degrees))
            values, _ = target.forward(w, d)
            rows.append(values[target.output])
        return np.stack(rows)

    def slopes(
        self,
        weights: Floats,
        degrees: Floats,
        of_scores: Floats,
        by_degrees: bool,  # noqa: ARG002
    ) -> tuple[Floats, Floats]:
        """The derivatives with respect to the weights, and to those of degrees."""
        of_weights, of_degrees = np.zeros((2, len(weights)))
        for target, a, b, slope in zip(self.targets, self.pointers, self.pointers[1:], of_scores, strict=False):
            if slope.any():
                w, d = (part[a:b].astype(np.float64) for part in (weights, degrees))
                of_weights[a:b], of_degrees[a:b] = target.backward(w, d, slope)
        return of_weights, of_degrees
