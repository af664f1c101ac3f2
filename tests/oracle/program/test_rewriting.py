"""A program is rewritten only where it computes the same, whichever edits are made."""

from __future__ import annotations

import numpy as np
import pytest

from butfor.oracle.program.layout import Layout
from butfor.oracle.program.rewriting import simplify
from butfor.oracle.program.steps import Linear, Map, Reduce, Space, Value, in_order

ROWS, WIDTH = 4, 3


def read_out(
    code: str = "amax",
    function: str = "relu",
    parameters: tuple[float, ...] = (),
    edges: int = -1,
    arriving: int = ROWS,
    read_twice: bool = False,
) -> Value:
    """The extremes, over all rows, of a function of features that edits change, times a matrix."""
    numbers = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    features = Value(Space(ROWS), WIDTH, numbers, editable=True)
    row = Value(features.space, WIDTH, step=Map([features], function, [None], parameters))
    all_rows, empty = np.arange(arriving), 0.0 if code == "sum" else -1.0
    reduced = Reduce([row], code, np.zeros_like(all_rows), all_rows, np.full(arriving, edges), empty)
    extremes = Value(Space(1), WIDTH, step=reduced)
    out = Value(extremes.space, 2, step=Linear([extremes], np.arange(2.0 * WIDTH).reshape(WIDTH, 2)))
    if read_twice:
        last = Reduce([row], "sum", np.zeros_like(all_rows), all_rows, np.full(arriving, -1))
        both = [extremes, Value(extremes.space, WIDTH, step=last)]
        out.step = Linear([Value(extremes.space, WIDTH, step=Map(both, "add", [None, None]))], out.step.matrix)
    return out


def kinds(out: Value) -> list[str]:
    """What is done, in order."""
    return [getattr(step, "code", "product") for step, _ in in_order(out)]


def result(out: Value, fused: bool = False) -> list[float]:
    """What comes out before any edit."""
    layout = Layout.of(out, 0, np.ones(1, dtype=bool), fused=fused)
    start = layout.flat.start[layout.output]
    return layout.state().base[start : start + out.width].tolist()


@pytest.mark.parametrize("code", ["amax", "amin"])
@pytest.mark.parametrize(
    ("function", "parameters"), [("relu", ()), ("leaky_relu", (0.1,)), ("tanh", ()), ("sigmoid", ())]
)
def test_a_function_that_never_falls_comes_after_the_extremes(code, function, parameters):
    out = read_out(code, function, parameters)
    before = result(out)
    simplify(out)
    assert kinds(out) == [code, function, "product"]
    assert result(out) == before


@pytest.mark.parametrize(
    "options",
    [
        {"function": "leaky_relu", "parameters": (-0.1,)},
        {"function": "abs"},
        {"function": "neg"},
        {"code": "sum"},
        {"edges": 0},  # the edge may go
        {"arriving": 0},  # a row without entries has a number of its own
        {"read_twice": True},
    ],
)
def test_what_is_compared_first_otherwise_stays(options):
    out = read_out(**options)
    before, order = result(out), kinds(out)
    simplify(out)
    assert [kind for kind in kinds(out) if kind != "product"] == [kind for kind in order if kind != "product"]
    assert result(out) == pytest.approx(before)


def test_a_product_computes_the_relu_that_only_it_reads():
    out = read_out(edges=0)
    simplify(out)
    assert len(Layout.of(out, 0, np.ones(1, dtype=bool), fused=True).flat.kind) == len(kinds(out))
    out = read_out()
    simplify(out)
    layout = Layout.of(out, 0, np.ones(1, dtype=bool), fused=True)
    assert len(layout.flat.kind) == len(kinds(out)) - 1
    assert result(out) == result(out, fused=True)
