"""The curve on which the first layer's output lies, and what a margin reads of the three layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.stack import Layers

    Floats = NDArray[np.float64]

__all__ = ["Curve", "Reading"]


class Curve(NamedTuple):
    """What each node sends in the second layer, but for its scale, as a function of its t: linear between breaks."""

    breaks: Floats  # where a channel of the first layer goes on or off, rising
    slope: Floats  # (segment, channel of the second layer)
    offset: Floats  # (segment, channel): its value at t, if the segment went on as far as 0
    hidden_slope: Floats  # (segment, channel of the first layer): of the first layer's output

    @classmethod
    def of(cls, row: Floats, bias: Floats, matrix: Floats) -> Curve:
        """Of the row m that all nodes have in common, the first layer's bias, and the second layer's matrix."""
        bending = np.flatnonzero(row != 0)
        at = -bias[bending] / row[bending]
        order = np.argsort(at, kind="stable")
        on = np.zeros((len(order) + 1, len(row)), dtype=bool)
        on[:, row == 0] = bias[row == 0] > 0
        for number, channel in enumerate(bending[order].tolist()):
            on[number + 1 :, channel] = row[channel] > 0
            on[: number + 1, channel] = row[channel] < 0
        return cls(at[order], (on * row) @ matrix, (on * bias) @ matrix, on * row)


class Reading(NamedTuple):
    """What the margin of each pair of classes reads: q_1, and r and q_2 beside it; and the second layer's bias."""

    first: Floats  # (pair, channel of the first layer): q_1
    second: Floats  # (pair, 2, channel of the second layer): r and q_2
    bias: Floats  # (channel of the second layer)

    @classmethod
    def of(cls, layers: Layers, pairs: Floats) -> Reading:
        """The margin of each row of ``pairs``."""
        _, one, two, three = layers.widths.tolist()
        head = pairs @ layers.head
        first, second = np.zeros((len(pairs), one)), np.zeros((len(pairs), two))
        if layers.joined:
            first, second, head = np.split(head, [one, one + two], axis=1)
        through = head @ layers.matrices[2, :two, :three].T
        return cls(np.ascontiguousarray(first), np.stack([through, second], axis=1), layers.biases[1, :two].copy())
