"""What each node that sends to the target sends at least, and how fast that falls with the scales it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.margins.scales import ROUNDING, gather
from butfor.oracle.gcn.margins.tables import fill_table
from butfor.oracle.gcn.selection import sum_of_largest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.margins.workspace import Workspace
    from butfor.oracle.gcn.stack import Margins

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["fill_sender"]


# What is known of a ReLU on all graphs: that it is off, that it is on, or neither.
OFF, ON, UNKNOWN = 0, 1, 2


@step
def _lift(field: ReceptiveField, free: NDArray[np.bool_], more: int, e: int, work: Workspace) -> Any:
    """How far the scale of the sender of an entry rises at most while the entry is there."""
    y, edit = field.incoming.sender[e], field.edit[e]
    if work.num_edits[y] - 1 <= more and edit >= 0 and free[edit]:
        kept = 0.0
        for f in field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]:
            if field.receiver[f] == y:
                kept += work.weight[f]
        degree = max(work.degree[y] * (1 - ROUNDING) - work.loose[y] + kept, float(field.incoming.loop[y]))
        return max(min(work.top[y], 1 / np.sqrt(degree)) - work.scale[y], 0.0)
    return work.top[y] - work.scale[y]


@step
def _fill_states(field: ReceptiveField, margins: Margins, u: int, count: int, more: int, work: Workspace) -> None:
    """What is known of the ReLUs of a sender, whatever is deleted."""
    rows, sender, low, high = field.incoming.rows, field.incoming.sender, work.scale[u], work.highest[u]
    for j in range(len(work.own)):
        work.state[j] = ON
        if not margins.relu:
            continue
        least = most = work.total[j]
        for e in range(rows[u], rows[u + 1]):
            if work.weight[e] != 0.0:
                moved = work.weight[e] * work.lift[e] * field.first[sender[e], j]
                least += min(moved, 0.0)
                most += max(moved, 0.0)
        # The worst so many of what edits take, of either sign.
        for sign in range(2):
            for b in range(count):
                work.gain[b] = max(work.bundles[b, j] if sign == 0 else -work.bundles[b, j], 0.0)
            taken = sum_of_largest(work.gain, count, more)
            if sign == 0:
                least -= taken
            else:
                most += taken
        own, bias = work.own[j], margins.bias[j]
        if bias + max(low * low * own, high * high * own) + max(low * most, high * most) <= 0.0:
            work.state[j] = OFF
        elif bias + min(low * low * own, high * high * own) + min(low * least, high * least) < 0.0:
            work.state[j] = UNKNOWN


@step
def _fill_rates(field: ReceptiveField, free: NDArray[np.bool_], margins: Margins, u: int, work: Workspace) -> None:
    """How fast what a sender sends falls at most with the scales of those that it hears, and what that comes to."""
    rows, sender, coefs = field.incoming.rows, field.incoming.sender, margins.coefs
    for p in range(len(coefs)):
        work.risk[p] = 0.0
        for e in range(rows[u], rows[u + 1]):
            rate = 0.0
            if work.weight[e] != 0.0:
                row = field.first[sender[e]]
                for j in range(len(work.own)):
                    fall = -coefs[p, j] * row[j]
                    if work.state[j] == ON:
                        rate += fall
                    elif work.state[j] == UNKNOWN:
                        rate += max(fall, 0.0)
                rate = max(rate, 0.0) * work.weight[e]
                work.risk[p] += rate * work.lift[e]
                edit = field.edit[e]
                if edit >= 0 and free[edit] and work.edit_mark[edit] == u:
                    work.risks[work.place[edit], p] += rate * work.lift[e]
            work.rate[p, e] = rate


@kernel
def fill_sender(
    field: ReceptiveField, margins: Margins, free: NDArray[np.bool_], more: int, enumerated: int, u: int,
    work: Workspace,
) -> None:  # fmt: skip
    """All that is known of one sender, or of the target."""
    for e in range(field.incoming.rows[u], field.incoming.rows[u + 1]):
        if field.edit[e] >= 0:
            work.edit_mark[field.edit[e]] = -1
    count = gather(field, free, u, True, work)
    for e in range(field.incoming.rows[u], field.incoming.rows[u + 1]):
        work.lift[e] = _lift(field, free, more, e, work)
    _fill_states(field, margins, u, count, more, work)
    _fill_rates(field, free, margins, u, work)
    fill_table(
        work.degree[u], float(field.incoming.loop[u]), work.total, work.risk, work.own, margins.bias, margins.relu,
        margins.coefs, work.bundles, work.risks, work.weights, count, work.last[u], work.sums, work.risk_sums,
        work.degrees, work.following, work.vectors, work.ordered, work.gain, work.other, work.unused, enumerated,
        work.tables[u],
    )  # fmt: skip
