"""How much each deletion takes off a difference of scores at most: one walk back through a program.

An interval of a row lets every row lose as many edits as there are left. But the same few edits are made everywhere,
and most rows hear of none of them. So here the question is turned round: what can one edit do at most, wherever it
acts?

**The claim.** Let some edits be made, and let at most r of the free ones be made too, a set S. For a difference of
scores d, its value d₀ where S is empty, and a number L(e) for each free edit, d(S) ≥ d₀ − Σ L(e), added up over S. So
d(S) is at least d₀ less the r largest L. A negative L(e) is an edit that can only raise d.

**Losses.** The walk carries a *loss* of a row: numbers g and a ≥ 0, one for each column, such that the row takes no
more off d than Σ g Δ + a |Δ|, where Δ is by how much its numbers have changed from their present ones (level 0 of the
intervals). It begins with g = −1 at d. Losses of sums of changes add up, because g Δ + a |Δ| is subadditive. In each
step the loss of a row becomes losses of what it reads:

- *Matrices, copies, sums and factors that are fixed:* g becomes M g, and a becomes |M| a.
- *Functions of single numbers* (`functions.py`). The function changes by a slope times Δ, and on the interval of its
  number the slope lies in a range: that of a convex function between the chords from the present point to both ends, of
  a concave one likewise, of others between the least and the largest derivative. With slopes from v to u, the change is
  (u + v) / 2 Δ ± (u − v) / 2 |Δ|, so g becomes (u + v) / 2 g, and a grows by (u − v) / 2 |g| beside the largest size
  of a slope, times a. A convex function lies above its tangent: where g < 0, so that its fall is what counts, the slope
  of the tangent is enough; a concave one likewise where g > 0. So ReLU has slope s at its present number where g < 0,
  and slopes from its chords where g > 0.
- *Products* of two numbers that both change: x y − x₀ y₀ = y Δx + x₀ Δy, where y may be any number of its interval: a
  range of slopes for Δx. Which of them is x is free: that with the wider interval is, but if one of them is a single
  number that multiplies a whole row, such as the root of a degree, it is that one, since few edits change it. A
  quotient is a product with a reciprocal, which is a function of a single number. A choice between two numbers follows
  its condition, if that is decided on all graphs of the family. The larger of two numbers changes by a mean of both
  changes.
- *Sums.* Where the edit of an entry is made, the row that it brings, x, is gone: that takes −g x + a |x| off. Where it
  is not, a change of that row is a change of the sum.
- *Means* of n entries, or other sums that are multiplied with a scale s(n) > 0, such as GCN's 1 / √n (`scaling.py`).
  Let k < n entries be gone, and let T be the sum of all as they are now. The change is s(n − k) times (Σ over the lost
  of (c T − x) + Σ over the others of Δx), with c = (s(n − k) − s(n)) / (k s(n − k)): of means, c T is the mean. Of all
  k that can be lost the least and the largest c count, and the largest s; what is negative counts as 0. That makes the
  changes of the others count for as much as if all others were gone. Or else the deletions are *charged* for what the
  scale grows by. If M is the mean with the k gone, then T' = M / s(n − k) is the sum of the others, and M = s(n) T' +
  (1 − s(n) / s(n − k)) M. So the change is Σ over the lost of (u M − s(n) x) + Σ over the others of s(n) Δx, with u =
  (1 − s(n) / s(n − k)) / k. Here M may be any number of its interval, and of all k the least and the largest u count.
  It is charged where this is estimated to be less (`averages.py`). Where all may be gone, the change is from the
  present number to the value of an empty row; each deletion takes at least an n-th of this off.
- *Maxima.* For each column, let t be the largest entry, and its place that of the entry b. Falling is what takes off
  where g < 0, so far as b is there: the maximum is at least b, and gΔ is at most g times the change of b. Where b is
  gone it falls from t. If the lower ends of the others are v₂ ≥ v₃ ≥ …, the deletions that reach down to v_j pay (v_j −
  v_{j + 1}) / j each (as in `mixing.py`); no entry needs to be charged for changes then. Rising takes off where g > 0:
  an entry with upper end h > t whose present number is x rises above t by at most (h − t) / (h − x) of its own rise. If
  b is there and no other can exceed it, the maximum changes as b does. The part a |Δ| pays for falls and rises. Where
  all may be gone and an empty row is larger than t, each deletion pays an n-th of that rise. A minimum is a maximum
  with all signs turned.
- *Products with maxima of fixed rows* (`sorted_extremes.py`). It is known exactly how the product changes where one
  entry alone is deleted, with all columns agreeing. Beyond these changes a column falls, with any others, by at most
  what the shares above are more than the fall of the deletion by itself.

**Paths.** A row of another node may be read in many places. Each of them begins a *path* of its own: the entry that
leads there, and all before it, are there, so their edits are not made on it. An edit takes off what it takes off on all
paths together. A path may have ended, because another edit of S has deleted an entry of it; then nothing is taken off
on it, and nothing is brought either. So of what an edit takes off and brings on one path, the sum counts if it is
positive; and else only where no free edit can end the path, and where the scale of all means before is known.

**All edits together.** Either a path is ended, or something is taken off on it, never both. For any price λ ≥ 0, d(S)
is at least d₀ − λ r − (Σ over S of what each takes off, less λ). An edit that takes off l of L(e) in all, on those
paths that are left, is worth l − λ ≤ l (1 − λ / L(e)) if L(e) > λ, and nothing otherwise. So each part of a loss is
reduced by this factor, and from the last path to the first the larger of two is added to the path before: what ends a
path, and all that is lost on it. What the first path comes to, plus λ r, is the most that can be taken off
(`most_of_all`). λ is the r-th largest L(e); of this and the sum of the r largest the smaller one counts.

**Weak edits.** With e in S, no more than (sum of the r largest) − (r-th largest) + min(L(e), r-th largest) is taken
off; or, with a price, that with all edits together, plus L(e) − λ where that is negative. If this does not reach the
goal for any difference that counts, no set of the branch with e does, and e is excluded (`fixing.py`). All of it holds
in every branch that comes of this one by excluding edits; and a difference that cannot reach the goal in a branch
cannot do so in any branch of it.

| file | what is in it |
|---|---|
| `walk.py` | the walk: all kinds of steps but reductions; all edits together |
| `functions.py` | slopes of functions on intervals |
| `entries.py` | the entries of a reduction on a path, and paths that begin with them |
| `averages.py`, `extremes.py` | sums, means and other scaled sums; maxima and minima |
| `sorted_extremes.py` | products with maxima and minima of fixed rows |
| `room.py` | what losses are kept in |

"""
