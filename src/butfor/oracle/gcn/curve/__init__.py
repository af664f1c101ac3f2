"""How far at most one more deletion can move a stack of three GCN layers whose nodes all have the same features.

Then the first layer knows no more of a node than one number, and its output lies on a curve. The bounds of
`gcn/bounds.py` look at each channel by itself; here the channels stay together, so that what cancels out cancels out.
`influence` returns numbers U(e) as in `gcn/bounds.py`: margin(D + e) ≥ margin(D) − U(e) for *every* set D that holds
the edits ``removed`` and fewer than ``more`` of the ``free`` ones. Notation as there and in `gcn/kernels.py`, but that
layers are counted from 1; the target is node 0, and no ReLU follows the third layer.

**Setting.** All rows of X·W_1 are one row m, so Z_1(v) = t(v) m + b_1 with the number t(v) = s(v) A(v),
A(v) = ω s(v) + Σ_{u→v} w s(u). What node v sends in the second layer is y(v) = s(v) g(t(v)), where
    g(t) = W_2ᵀ ReLU(t m + b_1)
is linear between a few breaks (`shape.py`). With y, and Z_2(v) = s(v) Y(v) + b_2, Y(v) = ω y(v) + Σ_{u→v} w y(u), the
margin of a pair of classes is, but for a constant, with coefficients q_1, q_2 and r = W_3 q_3 that the head gives,
    q_1 · ReLU(t(0) m + b_1) + q_2 · ReLU(Z_2(0)) + s(0) Φ,   Φ = ω s(0) φ(0) + Σ_{u→0} w s(u) φ(u),
    φ(u) = r · ReLU(Z_2(u)).

**The difference, exactly.** Let F be the graphs that lack ``removed`` and at most ``more`` free edits, G' and
G'' = G' − e two of them, and Δx = x'' − x'. From Δ(ab) = a''Δb + Δa·b', as a ReLU moves by σ in [0, 1] times what its
argument moves by (σ = 1 where that is never negative on F, 0 where it is never positive), and as g moves by
Δt times a mean of its slopes between t' and t'', with c(u) = w(u→0) s(0) s(u), c(0) = ω s(0)²:
    Δmargin = q_1-slope · Δt(0) + (q_2 σ) · ΔZ_2(0) + Σ_v c''(v) (r σ) · ΔZ_2(v)       (v: the target and its senders)
              + Δs(0) (Φ' + s''(0) ω φ'(0)) + s''(0) (Σ_{u→0 in G''} w Δs(u) φ'(u) − Σ_{u→0 in e} w s'(u) φ'(u))
    ΔZ_2(v) = Δs(v) Y'(v) + s''(v) (ω Δy(v) + Σ_{u→v in G''} w Δy(u) − Σ_{u→v in e} w y'(u))
    Δy(u) = Δs(u) g(t'(u)) + s''(u) slope(u) Δt(u)
    Δt(u) = Δs(u) (A'(u) + ω s''(u)) + s''(u) (Σ_{x→u in G''} w Δs(x) − Σ_{x→u in e} w s'(x)).
So with the numbers β(v, u) = (r σ(v)) · g(t(u)), γ(v, u) = (r σ(v)) · slope(u), α(v) = (r σ(v)) · Y(v), those of the
target also with q_2 for r, and
    τ(u) = [u = 0] q_1-slope + s(u) (Σ_{u→v} c(v) w s(v) γ(v, u), and for u itself c(u) ω s(u) γ(u, u)),
the difference is Σ_x Δs(x) B(x) − Σ_{u→x in e} P(u→x), where
    B(x) = τ(x) (A(x) + ω s(x)) + Σ_{x→u} w s(u) τ(u) + Σ_{x→v} c(v) w s(v) β(v, x) + c(x) ω s(x) β(x, x)
           + c(x) α(x) + what Φ adds: w s(0) φ(x), at the target Φ + ω s(0) φ(0),
    P(u→x) = w s(u) (s(x) τ(x) + c(x) s(x) β(x, u)), at the target also w s(0) s(u) φ(u).

**The bound.** Every s, t, A, Z is a value on some graph of F, so numbers that hold on all of F may stand for them, each
at its worst end. For the ReLUs that are on all over F, Σ_j r_j g_j is *one* function of t(u), linear between breaks:
its least and largest value and slope on the interval of t(u) are found without taking the channels apart; only channels
whose ReLU is undecided are added one by one. Sums over entries are bounded as in `gcn/bounds.py`: the present one, less
the worst entries that F may lack, less the worst parts of what risen scales do; s² = 1/d is convex in d too. A term
that needs two entries, u→v and v→0, is lost with either: `most_killed` counts how many terms of a sum an edit takes.
An entry of weight w into a node of degree d raises its scale by (d − w)^(−1/2) − d^(−1/2), which falls with d, so
Δs lies between the steps at the present and at the least degree, and
    U(e) = max(0, Σ_{entries of e} (max P − min Δs B)).
U is the largest over all class pairs. From any set to a larger one the margin falls by no more than the sum of the U's
that are added, so the ``more`` largest bound all that may follow.
"""
