"""Interval bounds on a traced model over families of edited graphs, and the branch and bound search that uses them.

**The family.** Every edit is *made*, *excluded* or still *free*, and at most r of the free edits are made. Every value
of the program gets an interval that contains it on all graphs of the family. A branch of the search is such a family,
and is pruned if the margin stays clear of the goal in all of it. This is why the intervals hold:

- **Owners.** Every row of a value belongs to one owner: a node's row to the node, an edge's row to the node that the
  edge leads to. E(u), the edits of u, are those that add or delete an entry of a reduction at u, and those that set a
  feature of u. An edit may have several owners, as where it deletes both directions of an edge. Functions of single
  numbers, matrices and folds stay within an owner; only gathers, concatenations and reductions read rows of another.
  (The proof holds for any choice of owners; this one makes the intervals narrow.)
- **Cases.** A case says which free edits of E(u) are made: a certain subset (while there are few subsets), or only that
  their number is from i to j. Together the cases cover all that the family allows. All rows of u are computed case by
  case, by interval arithmetic, and other owners read the *hull*, the smallest interval that contains those of all
  cases. So within a case the edges of u that are there, their number and all that follows from them row by row (a mean,
  a softmax, a normalisation by degrees) agree with each other. A feature that edits set has the value that the subset
  gives it; where only the number of edits is known, it may have any value from the smallest to the largest that it can
  be set to. In a case that is a subset, an owner that reads no row of another owner that can change (an *exact* one)
  has single numbers for intervals, unless a comparison is undecided. Where nothing is counted, as for a mean, numbers
  of edits tell little, and from some number on one case is for all that are left. So it is where an exact owner weighs
  entries (a softmax), but not where others do, because the edits that are left for other owners count there too.
- **Levels.** The hull of level j holds on all graphs of the family on which at most j of the edits are made that the
  row depends on: those of its owner, of the owners that it reads, of those that these read, and so on. There are levels
  1, 2, 3, and a last one for any number up to the budget that it was computed for. A case with i edits belongs to the
  levels from i on, and for level j it is computed as if r were j. So a hull of a low level holds for every r, and only
  the last one has to be computed again where r is larger than the budget that it was computed for. (A larger budget is
  a larger family, so that is sound.) Where the budget exceeds `MOST_TOLD_APART`, every level of a row that depends on
  other owners is the hull of all cases. *Exact* owners are computed for the size of the whole search.
- **Entries that are there.** A row of v that arrives at u along an edge brings something only if that edge is there, so
  that the edit x that deletes it is not made. If x is an edit of v too, as where both directions of an edge are one
  edit, u reads a hull of those cases of v in which x is not made for certain: all but the subsets that contain x.
- **Phases.** u may read a row of v that was computed from another row of u. So an owner is computed in phases: a value
  has a later phase than every value of which it reads rows of another owner. A *unit* is an owner in a phase. It
  computes the rows of earlier phases again, so that all rows of a case agree.
- **Two passes.** In each case, rows are computed twice: with rows of other owners as they are if no free edit is made
  (the *usual* value), and with their hulls (the *wide* one). The *base* of a row is its usual value in the case in
  which no free edit of its owner is made. Usual values are intervals too where a case is only a number of edits, or a
  comparison is undecided.
- **Cones.** An entry of a reduction at u is computed from rows of u, which the case covers, and from rows of other
  owners. Its *cone* are the edits of those other owners, of those that they read in turn, and so on, except the edit
  that deletes this entry, because an entry that is gone brings nothing. If no edit of its cone is made, the entry has
  its usual value.
- **Capacity.** Let c(x) be the number of entries of a row whose cones contain the free edit x. Counted once for each
  cone that they are in, the edits that are made are at most Q: the sum of c(x) over the edits of the case and the
  r − |case| others, not in E(u), for which c is largest. Where a case is only a number of edits, from i to j, it is the
  sum over the j edits of E(u) and the r − i others for which c is largest, or over the r free edits for which it is, if
  that is less. So at most Q entries differ from their usual values.
- **Sums.** Let D(j) be the most by which an entry falls below its usual lower end if at most j edits of its cone are
  made: it is read off the hulls of level j, and off the last level for all larger j. The sum is at least the usual sum
  less the largest Σ D(j_e) over all entries e with Σ j_e ≤ Q, and that is at most the sum of the Q largest increments
  of the concave hulls of all D. (Where Q is so large that these are all increments, every entry falls to its wide
  lower end.) Where a case is a subset, that is all. Where it is a number of edits, from i to j, each free edit of u has
  an effect on the sum: it takes away what the entries that it deletes usually bring, and adds the wide lower ends of
  those that it adds. The sum of the i smallest effects, and of those of the next j − i that are
  negative, is added. (An entry that is deleted *and* falls counts twice, which only lowers the bound.) For the upper
  end all signs are turned.
- **Maxima.** Let at most Q entries differ from their usual values and at most k be deleted. A maximum is at least each
  of these: the largest wide lower end of an entry that is sure to be there; the (Q + 1)-th largest usual lower end of
  these; and of all entries that are there if no free edit of u is made, the (k + 1)-th largest wide and the
  (Q + k + 1)-th largest usual lower end. It is at most the largest wide upper end of all entries that may be there. If
  all entries may be gone, the value of an empty row belongs to the interval, and so does the least lower end of all
  entries. For a minimum all signs are turned.
- **Softmax.** A weighted mean Σ w m / Σ w with positive w is at least t if Σ w (m − t) is at least 0. That is a sum as
  above, in which each summand is least at a corner of the intervals of w and m, and an entry falls all the way with the
  first edit of its cone. t is found by the Illinois method (regula falsi), and the last t that was confirmed is
  returned; the first is the least m of all entries. All weights are divided by the largest. What is below 1e-9 of the
  summands does not count as positive, so neither cancellation nor weights that vanish can confirm a t. If all entries
  may be gone, the value of an empty row belongs to the interval.
- **Linear bounds.** An interval lets each column of a reduction lose the entries that matter most to it, but the same
  edits are made in all columns. So where a matrix mixes columns, a number y of a row that others read is bounded once
  more in the same case, for the lower end as it is and for the upper end with its sign turned: y is at least a constant
  plus slopes times other numbers of u, which are replaced in turn by what they are computed from, backwards. This is
  exact for matrices, sums, and products with a single number. With l and h the ends of z, and l < 0 < h, a slope s > 0
  times relu(z) is at least 0 and at least s z, and a slope s < 0 times relu(z) is at least s times the chord through
  both ends, because relu is convex; leaky ReLU likewise, if its leak is from 0 to 1. Numbers of other owners, and what
  is computed in any other way, are replaced by an end of their interval. What is left are reductions:
  - *Sums.* Slopes times the columns of a sum are a sum again, of slopes times what each entry brings. It is bounded as
    above, except that the effects of u's edits are added up over all reductions that y depends on, and their smallest
    sum is taken once: the same edits are made in all of them.
  - *Maxima.* Let v₁ ≥ v₂ ≥ … be the usual lower ends of the entries of a column that are there if no free edit of u is
    made, and S those of them that are deleted or differ from their usual values. The maximum is below a number θ only
    if all entries with v ≥ θ are in S, and those of them that are not deleted have fallen below θ. If these are j, or
    at least j, then 1 is at most the number of them that are in S, divided by j. Adding this up over all θ from v₁ down
    to the lower end that the column has anyway, the column falls below v₁ by at most the sum over S of a share of each
    entry: (v_j − v_{j + 1}) / j for every j from its own place on, of which only what lies above its wide lower end
    counts if it is not deleted. (Of the largest `MOST_TOP` entries; what lies below them is divided among them.) It
    rises above the largest usual upper end by at most the sum of what all entries in S and all added ones exceed it by.
    So slopes times columns are a sum over entries: shares where a slope is positive, rises where it is negative. Those
    of deleted and added entries are effects of u's edits; of the others at most Q are in S. Where all entries may be
    gone, the value of an empty row takes the place of the largest usual upper end, if it is larger.

  The larger of both lower ends and the smaller of both upper ends is kept. An unknown interval stays as it is.
- **Unknown stays unknown.** What is not finite, or not known to be a number, has the interval of all numbers, and so
  has everything that is computed from it; only a choice by an unknown condition has the hull of what it chooses from.
- **What is not computed.** Of the target's row only the hull of one level is asked for, that of the budget, and it is
  computed again for every other budget. Otherwise a hull holds until an edit of its owner is decided or freed, r
  changes, or a unit that it reads is computed again. Where base and case are single rows, the product with a matrix is
  that of the base plus the matrix times the difference; and a maximum is that of the base unless an entry that attains
  it is deleted or a larger one is added. By how much an entry can fall is the same in all cases of u if it is a row of
  another owner. A row that depends on no other owner is wide as it is usually, and a sum is wide the usual sum, less
  what can change, unless entries may be added.

**The search** (`search.py`) decides edits in a fixed order: made first, then excluded. Sets that it covers are pruned
with a branch, handed over to be tried, or passed over for one of two reasons. (1) An edit is *cut off* if every path
along which the target reads a row of its owners passes a deleted edge; edges that may be added count as there, so it
stays cut off whatever else is made. The set without it has the same scores, is smaller, and is covered too. (2) An edit
is passed over if with it and the cheapest that are needed to complete a set of the full size the cost would exceed the
limit. So sets of fewer edits may be left out: whoever searches with a limit has covered all smaller sizes before, as
`Proof` does.

Several threads may share a search (`sharing.py`). Whoever has nothing to do takes over the branches that exclude the
first edit which another has made and would exclude later; the other keeps those that have it made. Together these are
what was left to the other. All decisions before that edit are final for both.

**Rounding.** All is computed in float64, without directed rounding, and compared with a model that may compute in
single precision. So 1e-4 of the largest score that the family may lead to is taken off the margin (`ROUNDING`), on top
of the room that the caller leaves. A comparison is decided only if a relative error of 1e-5 could not turn it; whole
numbers, such as degrees, are taken to be exact. This is room for errors and no bound on them: in a network whose hidden
values are thousands of times its scores, errors may be larger.

| file | what is in it |
|---|---|
| `prepare.py`, `scaling.py` | the program as it is bounded: differences of scores; a softmax, or a mean, as one step |
| `owners.py` | owners, units and cones, in flat arrays |
| `tables.py` | where everything is in the two arrays that compiled code is given |
| `intervals.py` | functions of single numbers on intervals |
| `rows.py` | one row of each kind of step except reductions |
| `entries.py` | the entries of a reduction's row in a case: which are there, and what they bring |
| `reductions.py`, `extremes.py`, `softmax.py` | one row of a sum, of a maximum or minimum, of a softmax, in a case |
| `backwards.py`, `slopes.py` | linear bounds: traced back through rows, and what reductions add to them |
| `capacity.py` | how many entries of a reduction can differ from their usual values |
| `room.py` | what is kept of entries that read rows of other owners |
| `selection.py` | the smallest of some numbers |
| `cases.py` | all cases of a unit; which units have to be computed again |
| `search.py` | branch and bound over all sets of at most so many edits |
| `sieve.py` | what Python sees of it |
| `sharing.py` | a search that several threads share, with these bounds or those below |
| `plain/` | quicker bounds for sums, means and maxima, and a search that asks for these ones only where they pay |
"""
