"""How much a search may spend: whole numbers of questions, any number of seconds, or no limit."""

from __future__ import annotations

import numpy as np
import pytest

from butfor.errors import InputError
from butfor.problem.budget import Budget


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evaluations": 1.5}, "evaluations of the budget is 1.5; give a whole number"),
        ({"evaluations": True}, "evaluations of the budget is True; give a whole number"),
        ({"evaluations": 0}, "a budget of 0 evaluations allows no search; give a positive number or None"),
        ({"seconds": "1"}, "a budget of '1' seconds allows no search; give a positive number or None"),
        ({"seconds": -1.0}, "a budget of -1.0 seconds allows no search; give a positive number or None"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Budget(**settings)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Budget(np.int64(5)).evaluations == 5
    assert Budget(seconds=np.float32(0.5)).seconds == 0.5


def test_a_meter_counts_until_the_budget_is_spent() -> None:
    meter = Budget(evaluations=5).meter()
    part = meter.half()
    assert (meter.left, part.left, meter.seconds_left) == (5, 2, None)
    part.count(2, failures=1)
    assert (part.spent, meter.spent, meter.left) == (True, False, 3)
    # What is counted on a part is counted on the whole.
    assert (meter.evaluations, meter.failures) == (2, 1)
    meter.count(4)
    assert (meter.spent, meter.left, meter.late) == (True, 0, False)
    assert Budget(evaluations=None).meter().left is None


def test_a_meter_is_late_when_its_time_is_up() -> None:
    late = Budget(evaluations=None, seconds=1e-9).meter()
    assert (late.late, late.spent, late.left, late.seconds_left) == (True, True, 0, 0)
