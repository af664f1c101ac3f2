"""Plain intervals for sums, means and maxima where edits only delete: quick bounds, at every branch of a search.

The bounds of the package above tell apart which edits are made at a node, and how many anywhere else. That makes them
tight, and takes up to tens of milliseconds for a branch. Here every number has one interval, and a branch takes tens of
microseconds. What the same few edits can do in all rows together is bounded by what each of them takes off a score
(`losses/`, where the proof of that is), which is tighter than either for most questions. Where a program does something
that losses are not known to pass through, such as a product of two numbers that both change, the bounds of the package
above are asked for where they pay. (So it is in a branch where losses are not known, because a number that something
is divided by may be 0, say.)

**The family.** Every edit is *made*, *excluded* or still *free*, and at most r of the free edits are made. Every number
of the program gets an interval that contains it on all graphs of the family, row by row, in an order in which a row
comes after all that it reads. Where a row is no reduction, this is interval arithmetic.

**Reductions.** Entries whose edit is made are gone, and those whose edit is excluded, or that no edit deletes, are
there. Of the m others, at most k = min(m, r a) are gone, where a is how many entries of this row one edit deletes at
most. Each that is there has a value in the interval of the row that it brings.

- *Sum.* It is at least the sum of all lower ends without the k largest of those that may go, as far as these are
  positive. For the upper end all signs are turned; so it is for what follows.
- *Mean*, or any sum that is multiplied with a scale s(n) > 0 for its n entries, such as GCN's 1 / √n (`scaling.py`). It
  is at least the least, over all i ≤ k, of s(n − i) times the sum of all lower ends without the i largest of those that
  may go. If all entries may be gone, the value of an empty row belongs to the interval.
- *Maximum.* It is at least the largest lower end of the entries that are there for sure, and, where k < m, the (k +
  1)-th largest lower end of those that may go. It is at most the largest upper end of all. If all entries may be gone,
  the interval also contains the least lower end and the value of an empty row.

**Matrices.** An interval lets each column of a reduction lose the entries that matter most to it, but all columns lose
the same ones. So where a matrix mixes columns, each number y of the product is bounded once more, for the lower end as
it is and for the upper end with its sign turned, and the narrower of both intervals is kept.

- *Of a sum or mean*, where y is a constant plus Σ w z or Σ w relu(z), and each z is a column of the reduction plus
  other summands of the same row. With l and h the ends of z, and l < 0 < h, w relu(z) is at least 0 and at least w z if
  w > 0, and at least w times the chord through both ends if w < 0, because ReLU is convex. If h ≤ 0 it is 0, and if l ≥
  0 it is w z. So y is at least a constant plus slopes times z. Other summands are replaced by an end of their interval.
  What is left, slopes times the columns of the reduction, is the same reduction of slopes times each entry, one number
  for each entry, and is bounded as above.
- *Of a maximum*, where y is a constant plus Σ w m. Where w > 0, let v₁ ≥ v₂ ≥ … be the lower ends of the column, of
  the entries that are there unless they are among the at most k that go. The maximum is below a number θ only if all
  entries with v ≥ θ are gone. If these are j, then 1 is at most the number of them that are gone, divided by j. (Only
  the first few are told apart; the last of these are then gone wherever all of them are.) Adding this up over all θ
  from v₁ down to the lower end that m has anyway, m falls below v₁ by at most the sum, over all entries that are gone,
  of a share of each: (v_j − v_{j + 1}) / j for every j from its own place on. Where w < 0, m is at most its upper end
  h; and where the entry with the largest upper end is gone, it is at most the next largest one (or the value of an
  empty row, if all entries may be gone), which is h less a gain. So y is at least a constant plus Σ w v₁ + Σ w h, less
  the k largest of what all shares of an entry, times w, and its gains, times w < 0, add up to, as far as these are
  positive. A minimum is a maximum with all signs turned.

**Levels.** There are intervals for several budgets, and a branch in which r edits are left reads those for the next
budget that is at least r: a larger budget is a larger family. When the status of an edit changes, the rows that it
deletes entries of are computed again, then those that read a row that changed. All others follow from the same numbers
as before. (A row that a matrix mixes reads all that it is bounded by once more: what entries bring, which of them may
go, other summands, and what ReLU is applied to. Each may change where the input of the matrix does not.) So the
intervals of a level do not depend on which branches came before. Where no edit is left, intervals are single numbers
(unless a comparison is undecided): that is how a set of edits itself is looked at before it is handed over.

**Limits** (`limits.py`). An interval lets every row lose as many edits as there are left, and so do the intervals of
what it reads. What each edit takes off a number of the program at most, wherever it acts, can be found for any number,
not only for scores (`losses/`). So in a search for sets of at most r edits, once it has gone on for a while, numbers
that functions read are bounded by r such losses, before any edit of the search is made or excluded: each limit holds
for all sets of at most r of its edits, and so in all branches of this search. From then on every interval ends at these
limits at the latest, and slopes on it are narrower. Limits of one step are found with those of the steps before.

**The search** (`search.py`) covers the same sets as that of the package above, for the same reasons: a set is pruned
with a branch by some bound, or because an edit of it is too weak (`losses/`), handed over, or passed over because an
edit of it is cut off, or because it costs too much. In which order edits are decided makes no difference to that. The
most promising one comes first, whose loss is the largest share of what is still missing; but where at least half of the
free edits may be made, those nearest to the target do, since others are then often cut off. An edit is *cut off* if the
target reads none of the rows that it deletes entries of; what it reads is found by following all rows back from it, but
for entries that are deleted.

**Rounding** is as in the package above. Where interval arithmetic bounds apart what never comes together, one end may
be 1e16 times as large as the other, or a loss as a score, and what is computed of their difference would be nothing but
rounding. So ends that are put together of a middle and half a width move outwards, matrices do not mix very large
numbers, and losses are not known where a number may take off a hundred million times what it is about (`walk.py`).

| file | what is in it |
|---|---|
| `tables.py` | the program and its edits in flat arrays: which rows read which, and which an edit changes |
| `entries.py` | what a row reads, and the status of each entry of a reduction |
| `rows.py` | one row of each kind of step |
| `mixing.py` | rows of matrix products once more |
| `losses/` | what each edit takes off a score at most |
| `limits.py` | limits of hidden numbers, for a whole search |
| `branches.py` | where the search is, and bringing a level up to date |
| `fixing.py` | excluding weak edits, and pruning branches that have no others |
| `search.py` | branch and bound |
| `room.py` | the arrays that all this is computed in |
| `sieve.py` | what Python sees of it; asking for tighter bounds |

"""
