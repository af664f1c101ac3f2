"""The programs of several targets as a smooth function of one weight per edit, joined to autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from butfor.oracle.base import Relaxation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.oracle.program.kernels.flat import State
    from butfor.oracle.program.program import Program

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
        self._state: State | None = None
        self._last: tuple[NDArray[np.float64], ...] | None = None
        output = layout.output
        self.output = slice(
            int(flat.start[output] + layout.row * flat.width[output]),
            int(flat.start[output] + (layout.row + 1) * flat.width[output]),
        )

    def columns(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weight of each edge column; an edge that may be added is there as far as its edit is made."""
        columns = np.ones(len(self.layout.present))
        mine = weights[self.owner]
        columns[self.owned] = np.where(self.sign > 0, mine, 1 - mine)
        return columns

    def forward(
        self, weights: NDArray[np.float64], counted: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All values, and the weights of the edge columns; those of the last call where it was the same."""
        from butfor.oracle.program.kernels.soft import forward

        columns = np.stack([self.columns(weights), self.columns(counted)])
        state = self._state = self._state or self.layout.soft_state()
        moved = (1 - weights[self.edit]) * self.step
        if self._last is None or not all(map(np.array_equal, self._last, (columns, moved))):
            self._last = None
            state.base[self.at] = self.layout.start[self.at]
            np.add.at(state.base, self.at, moved)
            forward(self.layout.flat, state, columns)
            self._last = columns, moved
        return state.base, columns

    def backward(
        self, weights: NDArray[np.float64], counted: NDArray[np.float64], slope: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The derivatives with respect to the weights of edits, and to those that degrees are counted with."""
        from butfor.oracle.program.kernels.gradients import backward

        values, columns = self.forward(weights, counted)
        slopes, found = np.zeros_like(values), np.zeros_like(columns)
        slopes[self.output] = slope
        backward(self.layout.flat, values, slopes, columns, found)
        d_weights, d_counted = np.zeros_like(weights), np.zeros_like(weights)
        np.add.at(d_weights, self.owner, self.sign * found[0, self.owned])
        np.add.at(d_counted, self.owner, self.sign * found[1, self.owned])
        if len(self.at):
            np.add.at(d_weights, self.edit, -slopes[self.at] * self.step)
        return d_weights, d_counted


class ProgramRelaxation(Relaxation):
    """Soft edges and features, by the compiled program of each target."""

    def __init__(self, asked: Sequence[tuple[Edits, Program]]) -> None:
        self.pointers = np.concatenate([[0], np.cumsum([len(edits) for edits, _ in asked])])
        self.targets = [_Soft(edits, program) for edits, program in asked]

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        """One row of logits for each target."""
        return cast("Tensor", _Pass.apply(weights, weights if degrees is None else degrees, self))  # type: ignore[no-untyped-call]


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, counted: Tensor, relaxation: ProgramRelaxation) -> Tensor:
        ctx.relaxation = relaxation
        ctx.save_for_backward(weights, counted)
        w, d = (part.detach().cpu().double().numpy() for part in (weights, counted))
        rows = []
        for target, a, b in zip(relaxation.targets, relaxation.pointers, relaxation.pointers[1:], strict=False):
            values, _ = target.forward(w[a:b], d[a:b])
            rows.append(values[target.output])
        return torch.from_numpy(np.stack(rows)).to(weights)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weights, counted = ctx.saved_tensors
        w, d = (part.detach().cpu().double().numpy() for part in (weights, counted))
        relaxation: ProgramRelaxation = ctx.relaxation
        slopes = grads[0].cpu().double().numpy()
        d_weights, d_counted = np.zeros_like(w), np.zeros_like(w)
        pointers = relaxation.pointers
        for target, a, b, slope in zip(relaxation.targets, pointers, pointers[1:], slopes, strict=False):
            if slope.any():
                d_weights[a:b], d_counted[a:b] = target.backward(w[a:b], d[a:b], slope)
        return torch.from_numpy(d_weights).to(weights), torch.from_numpy(d_counted).to(counted), None
