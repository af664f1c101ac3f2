"""The least margin that a stack of two GCN layers can have after at most so many deletions.

`least_margin` returns a number that the margin is not below after ``removed`` and any at most ``more`` of the ``free``
edits. A branch of a search may be cut where it is above what the goal asks for. Here is why it holds.

**Setting.** Notation as in `gcn/kernels.py`; t is the target. The margin of two classes is linear in Z_1(t), so
    margin = constant + s(t) (ω(t) g(t) + Σ_{u→t} w g(u)),      g(u) = s(u) a · H_0(u),
where a (`Margins.coefs`) is the difference of the classes mapped back through the second layer. A *sender* is a node u
with an entry u→t; the target counts as one, with weight ω(t). An edit *hits* v if it deletes an entry into v: the scale
of v and what is left of the entries into it depend on the edits that hit v, and on nothing else. Below D is what is
deleted, s⁰ the present scales, before D.

**A sender.** Let S be the edits of D that hit u. With S made, but all other scales as they are, u sends g_S(u). The
scales of those it hears can only rise, and a ReLU moves by σ times what its argument moves by, σ in [0, 1], so
    g(u) ≥ g_S(u) − s_S(u)² Σ_{y→u kept} rate(y→u) (s(y) − s⁰(y)),    rate(y→u) = w max(0, max_σ −Σ_j σ_j a_j M_0(y)_j).
σ_j is 1 or 0 where the argument has one sign for all S and all scales that are possible (`senders._fill_states`: the
present sum, less the worst that so many edits take, and all scales raised at will). Two bounds follow from it.
- *Together*: g_S(u) from a table by the number of hits, and s_S(u) at most its largest; what the scale of y costs is
  then its rise times a number (`exposed`) that is summed up over all senders that hear y.
- *Apart*: all scales that u hears are raised at once as far as they can while u hears them, for nothing; the second
  kind of table has g_S(u) − s_S(u)² Σ_{y→u kept} rate · rise. An edit that deletes y→u does not raise s(y) for u.
What a sender sends is bounded by either, whatever is done about the others; the better of all together and all apart
is taken. Tables (`margins/tables.py`) try all S of a size if these are few. If not, each ReLU is replaced by a line
below a_j ReLU (through 0 where a_j > 0, the chord where a_j < 0); with the number of hits the scale is known, what is
left is linear in S, and the worst S are those with the largest terms. Where weights differ the scale is an interval,
and products of intervals are taken.

**The budget.** Say k edits of D hit the target; that leaves more − k others. Given k, s(t) is known (or, where weights
differ, lies between those of the k largest and the k smallest), and g(t) is at least the entry of its table at k. Of
the present sum at most the k largest terms are gone. (A term below 0 that is gone only helps, but k of them are.)
Each sender that is kept loses f(i) at most if it is hit i times: by its table, and by what its own scale costs other
senders. The scale of any other node costs h(i) at most if it is hit i times, and so does that of a sender which is
dropped, which may then also be hit by the edit that drops it. A node that loses all edits that hit it need not count,
if these include all by which senders hear it. So the loss is at most Σ f(i_u) + Σ h(i_y), and that is at most the sum
of the largest increments of the least concave functions above f and h: as many as there are hits. The number of hits
on senders, and that of hits on all nodes, is at most that of the k edits at the target and the more − k others that
have most of them. This is the least over k (`margins/budget.py`).

**Branches.** Every D keeps or makes the first edit at the target, so the least of the bounds of these two cases is a
bound as well; and so on, until each case is above ``enough``, or one cannot be.

The margin of the goal is the least of the margins of its pairs of classes, or for a wanted class the largest; the least
or the largest of their bounds is below it. All is computed in float64; who compares with scores that were rounded must
leave room for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.oracle.gcn.kernels import jit, kernel, step
from butfor.oracle.gcn.margins.budget import pair_bound
from butfor.oracle.gcn.margins.scales import count_hits, fill_degrees, fill_scales
from butfor.oracle.gcn.margins.senders import fill_sender
from butfor.oracle.gcn.margins.workspace import allocate
from butfor.oracle.gcn.stack import Margins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.margins.workspace import Workspace

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["least_margin"]


@kernel
def _bound(
    field: ReceptiveField, margins: Margins, free: NDArray[np.bool_], more: int, enumerated: int, work: Workspace,
    out: Floats,
) -> None:  # fmt: skip
    """The least margin of each pair into ``out``."""
    fill_degrees(field, work)
    at_target, elsewhere = count_hits(field, free, work)
    fill_scales(field, free, more, at_target, work)
    for u in range(field.incoming.levels[1]):
        if u == 0 or work.into[u] > 0.0:
            fill_sender(field, margins, free, more, enumerated, u, work)
    for p in range(len(margins.coefs)):
        work.apart[:] = False
        best = pair_bound(field, free, more, p, at_target, elsewhere, work)
        work.apart[:] = True
        best = max(best, pair_bound(field, free, more, p, at_target, elsewhere, work))
        out[p] = margins.constant[p] + best


@step
def _remove(field: ReceptiveField, edit: int, weight: Floats) -> None:
    for k in range(field.edit_rows[edit], field.edit_rows[edit + 1]):
        weight[field.edit_entries[k]] = 0.0


@step
def _combine(out: Floats, every: bool) -> Any:
    """The margin by those of all pairs: the least of them, or the largest."""
    value = out[0]
    for p in range(1, len(out)):
        value = min(value, out[p]) if every else max(value, out[p])
    return value


@step
def _at_target(field: ReceptiveField, free: NDArray[np.bool_], weight: Floats, mine: Ints) -> int:
    """The free edits at the target into ``mine``; returns how many there are."""
    count = 0
    for e in range(field.incoming.rows[0], field.incoming.rows[1]):
        edit = field.edit[e]
        if weight[e] != 0.0 and edit >= 0 and free[edit]:
            known = False
            for i in range(count):
                known |= mine[i] == edit
            if not known:
                mine[count] = edit
                count += 1
    return count


@step
def _without(margins: Margins, dropped: NDArray[np.bool_]) -> Any:
    """The margins of all other pairs."""
    return Margins(margins.coefs[~dropped], margins.constant[~dropped], margins.bias, margins.relu)


@jit
def least_margin(
    field: ReceptiveField,
    margins: Margins,
    removed: NDArray[np.int64],
    free: NDArray[np.bool_],
    more: int,
    every: bool,
    enough: float,
    enumerated: int,
    branches: int,
    suspect: NDArray[np.bool_],
) -> Any:
    """The least margin after ``removed`` and at most ``more`` of the free edits.

    It is that of the pair with the least, or if not ``every`` the largest. Up to ``branches`` branches are followed at
    the target as long as it may exceed ``enough``, and tables try up to ``enumerated`` sets one by one. The branch in
    which just the ``suspect`` edits at the target are made comes first; if another one does not exceed ``enough``, that
    is the suspect afterwards.
    """
    pairs, width = margins.coefs.shape
    work = allocate(field, pairs, width, len(free), more)
    for gone in removed:
        _remove(field, gone, work.weight)
    out, mine = np.empty(pairs), np.empty(field.incoming.rows[1] + 1, np.int64)
    _bound(field, margins, free, more, enumerated, work, out)
    whole = _combine(out, every)
    count = _at_target(field, free, work.weight, mine)
    if whole > enough or count == 0 or branches == 0:
        return whole
    least = np.inf
    if every:
        # A pair that stays clear in all of the family does so in each of its branches.
        for p in range(pairs):
            least = min(least, out[p]) if out[p] > enough else least
        margins = _without(margins, out > enough)
        out = out[: len(margins.coefs)]
    # Each edit at the target is kept or made, one after the other: the least of all branches is a bound as well. A
    # branch that was not clear for another number of edits comes first: it is hardly ever clear now.
    left, weight, made = free.copy(), work.weight.copy(), np.zeros(count, np.bool_)
    used = 0
    for i in range(count):
        left[mine[i]] = False
        if suspect[mine[i]]:
            used += 1
            _remove(field, mine[i], work.weight)
    if used <= more:
        _bound(field, margins, left, more - used, enumerated, work, out)
        if not _combine(out, every) > enough:
            return whole
    left[mine[:count]] = True
    depth, used, back = 0, 0, False
    while True:
        if back:
            # From an edit that was kept to the same one made, or further up.
            while depth > 0 and (made[depth - 1] or used == more):
                depth -= 1
                used -= made[depth]
                made[depth] = False
                left[mine[depth]] = True
            if depth == 0:
                return max(least, whole)
            made[depth - 1] = True
            used += 1
        elif depth == count:
            suspect[mine[:count]] = made
            return whole
        else:
            left[mine[depth]] = False
            depth += 1
        if branches == 0:
            return whole
        branches -= 1
        work.weight[:] = weight
        for i in range(depth):
            if made[i]:
                _remove(field, mine[i], work.weight)
        _bound(field, margins, left, more - used, enumerated, work, out)
        value = _combine(out, every)
        back = value > enough
        if back:
            least = min(least, value)
