"""Plain values from a file: each is what it must be, or the error says which is not."""

from __future__ import annotations

import math

import pytest

from bad_files import LARGE
from butfor.boundary.json_values import Misfit, flag, items, number, record, shown, text, whole


def test_what_fits_is_given_back() -> None:
    assert whole(3, "nodes") == 3
    assert whole(-2, "seed", -5, 5) == -2
    assert number(3, "cost") == 3.0
    assert text("größer", "name") == "größer"
    assert flag(False, "directed") is False
    assert items((1, 2), "target", 2) == [1, 2]
    assert record({"a": None}, "before") == {"a": None}


@pytest.mark.parametrize(
    ("read", "values"),
    [
        (whole, [-1, 1.0, True, "3", None, LARGE, [1]]),
        (lambda value, name: whole(value, name, -5, 5), [-6, 6]),
        (number, [True, "1", None, LARGE, [1], math.inf, math.nan]),
        (lambda value, name: number(value, name, 0, 1), [-0.1, 1.1]),
        (text, [1, None, ["a"], {}, "\ud800"]),
        (flag, [0, 1, None, "no"]),
        (items, [None, 1, {}, "abc"]),
        (lambda value, name: items(value, name, 2), [[], [1], [1, 2, 3]]),
        (record, [None, 1, [], "a", {1: 2}]),
    ],
)
def test_what_does_not_fit_is_named(read, values: list[object]) -> None:
    for value in values:
        with pytest.raises(Misfit, match=r"^the field is .*, but must be") as caught:
            read(value, "the field")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200


def test_any_value_is_shown_in_a_few_words() -> None:
    assert shown("no") == "'no'"
    assert shown([1, "a", None]) == "[1, 'a', None]"
    assert shown("a\nb") == r"'a\nb'"
    for large in (
        LARGE,
        10**5000,
        "x" * 10**6,
        list(range(10**6)),
        [[[[[[1]]]]]] * 100,
        {str(n): n for n in range(999)},
    ):
        assert len(shown(large)) < 200
