"""Programs that are wrong on purpose: either the check that guards them refuses them, or the comparison finds them.

The kernels are run as plain Python here, so that one function of them can be replaced by a wrong one.
"""

from __future__ import annotations

from dataclasses import replace
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from butfor.oracle import registry
from butfor.oracle.general import ModelOracle
from butfor.oracle.program import build, layout, oracle, program
from butfor.oracle.program.kernels import changes, evaluate, functions, receivers, reductions, soft, values
from butfor.oracle.program.layout import Layout
from butfor.oracle.program.oracle import ProgramOracle, program_oracle
from butfor.oracle.program.steps import Reduce, in_order
from program_cases import EXACT, Hand, ProgramCase, hand_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Function = Callable[..., Any]

# Plain Python takes its time.
pytestmark = pytest.mark.slow

# Sums over edges and over self-loops that the model adds, means, maxima: all that an edit is followed through.
LAYERS = (("mean", "gated"), ("symmetric", "mean"), ("largest", "attention"))


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])
    # Plain Python says what compiled code keeps to itself.
    with np.errstate(all="ignore"):
        yield


def case_of(layers: tuple[str, ...], everything: bool = False) -> ProgramCase:
    """A small one: seven nodes and a self-loop among them, the target in the middle."""
    case = hand_case(Hand(*layers), 0, False, 2, everything)
    ends = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (2, 5), (5, 6), (3, 5)]
    data = case.data.subgraph(torch.arange(7))
    data.edge_index = torch.tensor([*ends, *(pair[::-1] for pair in ends), (3, 3), (2, 5), (5, 2)]).T.contiguous()
    return replace(case, data=data)


def caught(case: ProgramCase) -> str:
    """Who finds that the program is wrong: the guard, on which the general oracle answers, or the comparison."""
    if not isinstance(case.problem.oracle, ProgramOracle):
        assert isinstance(case.problem.oracle, ModelOracle)
        assert case.disagreement(case.problem.oracle) < EXACT
        return "guard"
    return "comparison" if case.disagreement(case.problem.oracle) > 1e-4 else ""


def run_plainly(monkeypatch: pytest.MonkeyPatch, **broken: Callable[[Function], Function]) -> None:
    """Run the kernels as plain Python, with some functions replaced by what ``broken`` makes of them."""
    modules = (functions, values, reductions, evaluate, receivers, changes)
    worlds = {module.__name__: dict(vars(module)) for module in modules}
    # The graph is small: all sums would be added up again, and no differences would be added.
    worlds[receivers.__name__]["FEW"] = 0
    plain = {
        one.py_func.__name__: FunctionType(
            one.py_func.__code__, worlds[one.py_func.__module__], one.py_func.__name__, one.py_func.__defaults__
        )
        for world in worlds.values()
        for one in world.values()
        if hasattr(one, "py_func")
    }
    plain |= VECTORS
    assert broken.keys() <= plain.keys()
    plain |= {name: wrong(plain[name]) for name, wrong in broken.items()}
    for world in worlds.values():
        world |= {name: one for name, one in plain.items() if name in world}
    monkeypatch.setattr(oracle, "extend", plain["extend"])
    monkeypatch.setattr(layout, "evaluate", plain["evaluate"])
    monkeypatch.setattr(
        program, "bound", lambda flat, state, edited: SimpleNamespace(flat=flat, state=state, edited=edited)
    )


# What vector instructions do.


def add_multiples(
    out: Any, o: int, start: Any, s: int, matrix: Any, m: int, factors: Any, rows: Any, count: int, width: int
) -> None:
    """A row, and multiples of rows of a matrix."""
    table = [matrix[m + row * width : m + (row + 1) * width] for row in rows[:count]]
    out[o : o + width] = start[s : s + width] + sum(map(np.multiply, factors[:count], table))


def add_products(
    out: Any, o: int, p: int, start: Any, s: int, t: int, x: Any, i: int, j: int, matrix: Any, m: int, wide: int,
    width: int,
) -> None:  # fmt: skip
    """Two rows, and the product of another with a matrix for each."""
    table = matrix[m : m + wide * width].reshape(wide, width)
    rows = [start[at : at + width] + x[of : of + wide] @ table for at, of in ((s, i), (t, j))]
    out[o : o + width], out[p : p + width] = rows


def add_products_of_relus(*arguments: Any) -> None:
    """The same of rows that are 0 where they are negative."""
    out, o, p, start, s, t, x, *others = arguments
    add_products(out, o, p, start, s, t, np.maximum(x, 0.0), *others)


def of_rows(join: Function) -> Function:
    """A row joined with others."""

    def joined(out: Any, o: int, start: Any, s: int, rows: Any, places: Any, count: int, width: int) -> None:
        row = start[s : s + width].copy()
        for place in places[:count]:
            row = join(row, rows[place : place + width])
        out[o : o + width] = row

    return joined


def fill_row(out: Any, o: int, number: float, width: int) -> None:
    """The same number everywhere."""
    out[o : o + width] = number


def row_by_row(compute: Function) -> Function:
    """A row of one or two."""

    def computed(out: Any, o: int, *inputs: Any) -> None:
        width = inputs[-1]
        rows = [x[i : i + width] for x, i in zip(inputs[:-1:2], inputs[1:-1:2], strict=True)]
        out[o : o + width] = compute(*rows)

    return computed


VECTORS: dict[str, Function] = {
    "add_multiples": add_multiples,
    "add_products": add_products,
    "add_products_of_relus": add_products_of_relus,
    "add_rows": of_rows(np.add),
    "largest_of_rows": of_rows(np.maximum),
    "smallest_of_rows": of_rows(np.minimum),
    "fill_row": fill_row,
    "copy_row": row_by_row(np.copy),
    "relu_row": row_by_row(lambda x: np.maximum(x, 0.0)),
    "add_row": row_by_row(np.add),
    "multiply_row": row_by_row(np.multiply),
    "rows_differ": lambda x, i, y, j, width: (x[i : i + width] != y[j : j + width]).any(),
}


def after_layout(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Layout], Layout]) -> None:
    """Spoil every layout that is made."""
    right = Layout.of
    monkeypatch.setattr(Layout, "of", lambda *arguments, **options: spoil(right(*arguments, **options)))


def after_lowering(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Reduce], None]) -> None:
    """Spoil every reduction of a program before it is simplified."""
    right = build.simplify

    def simplify(out: Any) -> None:
        for step, _ in in_order(out):
            if isinstance(step, Reduce):
                spoil(step)
        right(out)

    monkeypatch.setattr(build, "simplify", simplify)


@pytest.mark.parametrize("layers", LAYERS)
def test_a_right_program_is_trusted(layers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert caught(case_of(layers, everything=True)) == ""
    run_plainly(monkeypatch)
    case = case_of(layers, everything=True)
    assert isinstance(case.problem.oracle, ProgramOracle)
    assert caught(case) == ""


# Wrong row sets.


@pytest.mark.parametrize("layers", [("gated", "gated"), ("symmetric", "gated"), ("largest", "smallest")])
def test_every_needed_row_is_needed(layers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is left out has no value at all, or keeps an old one."""
    needed = program_layout(case_of(layers)).flat.needed
    for row in np.flatnonzero(needed)[::3]:
        with monkeypatch.context() as patch:
            after_layout(patch, lambda layout, row=row: _without(layout, row))  # type: ignore[misc]
            assert caught(case_of(layers)), row


def program_layout(case: ProgramCase) -> Layout:
    assert isinstance(case.problem.oracle, ProgramOracle)
    layout = case.problem.oracle._program(case.edits).layout
    assert layout is not None
    return layout


def _without(layout: Layout, row: int) -> Layout:
    layout.flat.needed[row] = False
    return layout


@pytest.mark.parametrize("layers", LAYERS)
def test_a_forgotten_edge_is_no_edit_that_cannot_matter(layers: tuple[str, ...]) -> None:
    """`relevant` is what search leaves edits out by: nobody guards it but these tests."""
    case = case_of(layers)
    layout, edits = program_layout(case), case.edits
    found = case.problem.oracle.relevant(edits)
    truth = np.abs(case.truth(np.arange(len(edits))[:, None]) - case.truth(np.array([[-1]]))).max(axis=1) > 1e-9
    assert not (truth & ~found).any()
    layout.reads[:] = False
    assert (truth & ~case.problem.oracle.relevant(edits)).any()


# Wrong entries.


def forget_loops(step: Reduce) -> None:
    """Entries that are no edge of the graph are left out, such as the self-loops of GCN."""
    kept = step.edges >= 0
    step.receiver, step.source, step.edges = step.receiver[kept], step.source[kept], step.edges[kept]


def forget_which_edge(step: Reduce) -> None:
    """An entry that is an edge is taken for one that is always there."""
    step.edges = np.full_like(step.edges, -1)


def loops_are_edges(step: Reduce) -> None:
    """An entry that is always there goes with the first edge."""
    step.edges = np.maximum(step.edges, 0)


def mix_receivers(step: Reduce) -> None:
    """Each entry leads to where the next one should."""
    step.receiver = np.roll(step.receiver, 1)


@pytest.mark.parametrize("spoil", [forget_loops, loops_are_edges])
def test_self_loops_of_a_layer_stay(spoil: Callable[[Reduce], None], monkeypatch: pytest.MonkeyPatch) -> None:
    after_lowering(monkeypatch, spoil)
    assert caught(case_of(("symmetric", "symmetric"))) == "guard"


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("spoil", [forget_which_edge, mix_receivers])
def test_entries_are_their_edges(
    layers: tuple[str, ...], spoil: Callable[[Reduce], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    after_lowering(monkeypatch, spoil)
    assert caught(case_of(layers)) == "guard"


@pytest.mark.parametrize("layers", LAYERS)
def test_edits_toggle_every_copy_and_both_directions(layers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    made = build.build

    def one_column_less(*arguments: Any) -> Any:
        program = made(*arguments)
        edited = program.edited
        last = edited.pointers[1:] - 1
        counts = np.maximum(np.diff(edited.pointers) - 1, 0)
        program.edited = edited._replace(
            columns=np.delete(edited.columns, last), pointers=np.concatenate([[0], np.cumsum(counts)])
        )
        return program

    monkeypatch.setattr(oracle, "build", one_column_less)
    assert caught(case_of(layers)) == "guard"


# Stale states. `extend` makes a prefix for good, tries what may follow, and undoes the prefix.


def nothing(_: Function) -> Function:
    """The function does nothing."""
    return lambda *_: 0


def undo_without_values(right: Function) -> Function:
    """Edges come back, and sums over them do not."""
    return lambda flat, state, columns, saved: right(flat, state, columns, 0)


def undo_without_edges(right: Function) -> Function:
    """Sums come back, and the edges do not."""
    return lambda flat, state, columns, saved: right(flat, state, columns[:0], saved)


def undo_all_but_one(right: Function) -> Function:
    """The last row that was saved is not brought back."""
    return lambda flat, state, columns, saved: right(flat, state, columns, max(saved - 1, 0))


def keep_without_edges(right: Function) -> Function:
    """A prefix changes values, and its edges stay; undoing it then takes them away."""
    return lambda flat, state, columns: right(flat, state, columns[:0])


def stopped_clock(right: Function) -> Function:
    """What was computed for the last edit passes for what is computed for this one."""

    def make(flat: Any, state: Any, *rest: Any) -> int:
        state.clock[0] = max(state.clock[0] - 1, 1)
        return right(flat, state, *rest)

    return make


def no_differences(right: Function) -> Function:
    """Sums keep the entries that went."""
    return nothing(right)


def all_rows_the_same(right: Function) -> Function:
    """Only the first receiver of what changed is computed anew."""
    return lambda flat, state, step, entries, now: right(flat, state, step, entries[:1], now)


STALE = {
    "_undo": (nothing, undo_without_values, undo_without_edges, undo_all_but_one),
    "_keep": (nothing, keep_without_edges),
    "_make": (stopped_clock,),
    "_add_differences": (no_differences,),
    "receivers_of": (all_rows_the_same,),
}


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize(
    ("name", "wrong"), [pytest.param(name, one, id=f"{name} {one.__name__}") for name in STALE for one in STALE[name]]
)
def test_nothing_is_left_of_an_edit(
    name: str, wrong: Callable[[Function], Function], layers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_plainly(monkeypatch, **{name: wrong})
    assert caught(case_of(layers)), "nobody noticed"


@pytest.mark.parametrize("what", ["base", "present"])
def test_nothing_is_left_between_two_questions(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that the last question spoilt; the guard asks only once before it trusts."""
    right, bound = oracle.extend, program.bound

    def extend(asked: Any, output: int, *rest: Any) -> None:
        right(asked.bound, output, *rest)
        if what == "base":
            asked.state.base[asked.flat.start[output] :] += 1e-3
        else:
            asked.state.present[::3] = ~asked.state.present[::3]

    monkeypatch.setattr(oracle, "extend", extend)
    monkeypatch.setattr(
        program, "bound", lambda *parts: SimpleNamespace(bound=bound(*parts), flat=parts[0], state=parts[1])
    )
    assert caught(case_of(LAYERS[0]))


# Wrong gradients.


def soft_disagreement(case: ProgramCase) -> float:
    """How far 0/1 weights are from the true edits."""
    relaxation = case.problem.oracle.relax([case.edits])
    assert relaxation is not None
    sets = case.sets()
    apart = 0.0
    for chosen, truth in zip(sets, case.truth(sets), strict=True):
        weights = torch.ones(len(case.edits), dtype=torch.float64)
        weights[chosen[chosen >= 0]] = 0.0
        apart = max(apart, float(np.abs(relaxation.logits(weights)[0].numpy() - truth).max()))
    return apart


def test_soft_edges_that_stay_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(LAYERS[0])
    assert soft_disagreement(case) < EXACT
    right = soft.forward
    monkeypatch.setattr(
        soft, "forward", lambda flat, state, weights: right(flat, state, np.ones_like(weights))
    )  # fmt: skip
    assert soft_disagreement(case) > 1e-3
