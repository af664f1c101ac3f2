"""What all graphs of a family have in common: bounds on a model's program, and a search that prunes with them.

**The family.** Some edits are made, some are ruled out, and of the rest, the free ones, at most r are made. Every value
of the program gets an interval that holds on all graphs of the family. Here is why it holds.

- **Owners.** Every row of a value belongs to an owner: a node's row to the node, a row of an edge to the node that the
  edge leads to. E(u) are the edits that toggle an edge into u. Functions of single numbers, matrices and folds stay
  within an owner; only gathers and reductions read rows of another.
- **Cases.** What is made of E(u) is one of finitely many cases: a certain subset of its free edits (a case of its own
  while these are few), or some number of them from i to j. All values of u are computed case by case, by interval
  arithmetic, and others read the hull of all cases. So the edges of u that are there, their number and all that
  follows from them row by row (a mean, a softmax, a normalisation by degrees) agree with each other within a case. A
  node that hears only of rows that no edit changes is known exactly in a case that is a single subset.
- **Two passes.** In each case, values are computed twice: with the rows of other owners as they are if no free edit is
  made (the *usual* value), and with their hulls. The usual value is an interval too where a comparison is undecided.
- **Sums.** Let a case be given. An entry of a sum differs from its usual value only if an edit in its *cone* is made,
  the edits that it follows from at all, other than by being deleted itself. With c(x) the number of entries at u whose
  cones have the edit x, the cones of all entries together have at most Q = Σ c(x) edits that are made, over the edits
  of the case and the r − |case| others for which c is largest. Let D(j) be the most by which an entry falls below its
  usual value if at most j edits of its cone are made. The sum is at least the usual sum less the largest Σ D(j_e) with
  Σ j_e ≤ Q, and that is at most the sum of the Q largest increments of the concave hulls of all D. Where a case is only
  a number of edits, the usual sum is less the i largest entries that can be lost, and less those of the next j − i that
  are positive. (An entry that is lost *and* falls is counted twice, which only lowers the bound.)
- **Maxima.** With at most Q entries changed and k lost, one of the Q + k + 1 largest usual entries is there and as
  usual; one of the k + 1 largest lower ends is there.
- **Softmax.** A weighted mean Σ w m / Σ w with positive w is at least t if Σ w (m − t) is at least 0, which is a sum
  as above; t is found by bisection, and the last t that was confirmed is returned.
- **Unknown stays unknown.** What is not finite, or not known to be a number, has the interval of all numbers, and so
  has everything that is computed from it. A comparison is decided only if no rounding could turn it.

All is computed in float64. Whoever compares with a model that computes in single precision leaves room for that.

| file | what is in it |
|---|---|
| `prepare.py` | the program as bounds read it: differences of scores, softmax as one step |
| `owners.py` | owners, units, cones, in flat arrays |
| `intervals.py` | functions of single numbers on intervals |
| `rows.py` | a row of each kind of step but reductions |
| `reductions.py`, `softmax.py` | what arrives along edges, in a case |
| `cases.py` | all cases of an owner; which owners have to be computed anew |
| `search.py` | keep or make: the search over all sets of a size |
| `sieve.py` | what Python sees of it |
"""
