"""What a method is: hyper-parameters that are checked, recorded, and kept apart from what no answer depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

import butfor
from butfor.errors import InputError
from butfor.methods import BatchMethod, Method
from butfor.methods.base import field_types
from butfor.problem.budget import Budget
from butfor.problem.proposal import Proposal
from butfor.session import Session
from butfor.testing import random_problem
from method_list import ALL


@dataclass(frozen=True)
class Plain(Method):
    """One hyper-parameter of each kind."""

    count: int = 1
    rate: float = 0.5
    limit: int | None = None
    flag: bool = False
    word: Literal["this", "that"] = "this"
    size: int | Literal["all"] = 3
    other: Method = field(default=butfor.Greedy())
    hidden: int = field(default=0, repr=False, compare=False)

    def solve(self, problem) -> Proposal:
        return Proposal()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"count": 1.5}, "count is 1.5; give a whole number"),
        ({"count": True}, "count is True; give a whole number"),
        ({"count": None}, "count is None; give a whole number"),
        ({"rate": "fast"}, "rate is 'fast'; give a finite number"),
        ({"rate": float("nan")}, "rate is nan; give a finite number"),
        ({"limit": 2.5}, "limit is 2.5; give a whole number or None"),
        ({"flag": 1}, "flag is 1; give True or False"),
        ({"word": 7.5}, "word is 7.5; give one of the words for it"),
        ({"size": 7.5}, "size is 7.5; give one of the words for it"),
        ({"other": "greedy"}, r"other is 'greedy'; give a method such as butfor\.Greedy\(\)"),
        ({"hidden": "x"}, "hidden is 'x'; give a whole number"),
    ],
)
def test_values_of_another_type_are_refused(settings: dict, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Plain(**settings)


def test_values_of_the_declared_type_are_taken() -> None:
    Plain(count=2, rate=1, limit=None, word="that", size="all", other=butfor.Exact())
    assert Plain(limit=4).limit == 4


def test_settings_leave_out_what_no_answer_depends_on() -> None:
    settings = Plain(hidden=3).settings()
    assert "hidden" not in settings
    assert settings == {
        "count": 1,
        "rate": 0.5,
        "limit": None,
        "flag": False,
        "word": "this",
        "size": 3,
        "other": butfor.Greedy(),
    }


@pytest.mark.parametrize("name", ALL)
def test_types_of_all_fields_are_known(name: str) -> None:
    method = ALL[name]
    known = field_types(type(method))
    # The objects that a subgraph explainer is and remembers in are imported for type checkers only.
    assert set(method.settings()) - {"explainer"} <= set(known)


def test_a_batch_of_one() -> None:
    @dataclass(frozen=True)
    class Together(BatchMethod):
        """The first edit of each."""

        def solve_batch(self, problems):
            for number, _ in enumerate(problems):
                yield number, Proposal(((0,),))

    problem = Session.of(*random_problem(0)).problem(0)
    assert Together().solve(problem) == Proposal(((0,),))


def test_a_method_that_still_takes_a_budget_works_and_is_told() -> None:
    seen = []

    @dataclass(frozen=True)
    class Former(Method):
        """As methods were written before problems had a meter."""

        def solve(self, problem, budget):
            meter = budget.meter()
            seen.append((budget.evaluations, meter is problem.meter))
            problem.ask([[0]], meter)
            return Proposal(evaluations=meter.evaluations)

    model, data = random_problem(0)
    with pytest.warns(DeprecationWarning, match="takes a budget|needs no meter|no longer needed") as told:
        result = butfor.explain(model, data, 0, Former(), budget=Budget(7))
    assert seen == [(7, True)]
    assert result.evaluations == 1
    assert [str(warning.message).split()[0] for warning in told] == ["Former.solve", "ask()", "evaluations"]
