"""What edits leave at receivers is what is left when it is all reduced again, whatever was edited before."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from butfor.oracle.program.kernels.bound import bound
from butfor.oracle.program.kernels.changes import extend
from butfor.oracle.program.kernels.flat import Edited
from butfor.oracle.program.layout import Layout
from butfor.oracle.program.steps import Linear, Map, Reduce, Space, Value

EMPTY = 0.5
NODES, WIDTH = 5, 11
REDUCTIONS = {"sum": np.add, "amax": np.maximum, "amin": np.minimum}


def reduced(code: str, data: np.ndarray, source: np.ndarray, there: np.ndarray) -> np.ndarray:
    """All that arrives at one row."""
    empty = 0.0 if code == "sum" else EMPTY
    return REDUCTIONS[code].reduce(data[source[there]], axis=0) if there.any() else np.full(data.shape[1], empty)


@pytest.mark.parametrize("code", REDUCTIONS)
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("entries", [1, 2, 7, 24])
def test_what_edits_leave_is_what_is_left(code: str, fixed: bool, entries: int) -> None:
    random = np.random.default_rng(entries)
    # Whole numbers, so that many are equal, above, at and below what an empty row has; the last entry is always there
    # in some cases, and some edges come instead of going.
    data = random.integers(-2, 3, size=(NODES, WIDTH)).astype(float)
    edges, source = np.arange(entries), random.integers(0, NODES, size=entries)
    if entries == 7:
        edges[-1] = -1
    present = random.random(entries) < 0.7
    rows = Value(Space(NODES), WIDTH, data)
    if not fixed:
        rows = Value(Space(NODES), WIDTH, data, editable=True)
        rows = Value(Space(NODES), WIDTH, step=Map([rows], "neg", [None]))
    out = Value(
        Space(1),
        WIDTH,
        step=Reduce([rows], code, np.zeros(entries, np.int64), source, edges, 0.0 if code == "sum" else EMPTY),
    )
    layout = Layout.of(out, 0, present)
    each, none = np.arange(entries + 1), np.zeros(0, np.int64)
    edited = Edited(each, each[:-1], np.zeros(entries + 1, np.int64), none, none, none, np.zeros(0), none)
    program = bound(layout.flat, layout.state(), edited)
    prefixes = [(), *combinations(range(entries), 1), *list(combinations(range(entries), 2))[:20], ()]
    for prefix in prefixes:
        candidates = np.array([-1, *(one for one in range(entries) if one not in prefix)])
        found = np.empty((len(candidates), WIDTH))
        ends = np.array([0, len(candidates)])
        extend(program, layout.output, 0, np.array([prefix], np.int64), candidates, ends, found)
        for candidate, scores in zip(candidates, found, strict=True):
            there = present.copy()
            there[[*prefix, *(one for one in [candidate] if one >= 0)]] ^= True
            there[edges < 0] = True
            np.testing.assert_array_equal(scores, reduced(code, data if fixed else -data, source, there))


@pytest.mark.parametrize("wide", [3, 64, 65, 200])
def test_products_anew_are_products_in_full(wide: int) -> None:
    random = np.random.default_rng(wide)
    data, matrix = random.normal(size=(4, wide)), random.normal(size=(wide, 7))
    data[random.random(data.shape) < 0.8] = 0.0
    for added in (None, Value(None, 7, random.normal(size=(1, 7)))):
        total = Reduce([Value(Space(4), wide, data)], "sum", np.array([0, 0, 0, 1]), np.arange(4), np.arange(4))
        out = Value(Space(2), 7, step=Linear([Value(Space(2), wide, step=total)], matrix, added))
        layout = Layout.of(out, 0, np.ones(4, dtype=bool))
        none = np.zeros(0, np.int64)
        edited = Edited(np.arange(5), np.arange(4), np.zeros(5, np.int64), none, none, none, np.zeros(0), none)
        found = np.empty((4, 7))
        nothing, ends = np.zeros((1, 0), np.int64), np.array([0, 4])
        program = bound(layout.flat, layout.state(), edited)
        extend(program, layout.output, 0, nothing, np.arange(4), ends, found)
        for gone, scores in enumerate(found):
            left = np.delete(data[:3], [gone] if gone < 3 else [], axis=0).sum(axis=0)
            np.testing.assert_allclose(scores, left @ matrix + (0.0 if added is None else added.data[0]), atol=1e-12)
