"""Is this a number, a list of them?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bad_files import LARGE
from butfor.boundary.arguments import as_items, as_plain, check_whole, is_finite, is_number, is_whole
from butfor.errors import InputError

META, SPARSE = torch.ones(3, device="meta"), torch.eye(3).to_sparse()


@pytest.mark.parametrize(
    ("value", "whole", "number", "finite"),
    [
        (3, True, True, True),
        (np.int64(3), True, True, True),
        (2**70, True, True, True),
        (LARGE, True, False, False),
        (-LARGE, True, False, False),
        (1.0, False, True, True),
        (np.float32(1.5), False, True, True),
        (math.inf, False, True, False),
        (math.nan, False, True, False),
        (True, False, False, False),
        (np.True_, False, False, False),
        ("3", False, False, False),
        (None, False, False, False),
        ([3], False, False, False),
        (Fraction(1, 2), False, False, False),
        (torch.tensor(3), False, False, False),
    ],
)
def test_what_is_a_number(value: object, whole: bool, number: bool, finite: bool) -> None:
    assert (is_whole(value), is_number(value), is_finite(value)) == (whole, number, finite)


@pytest.mark.parametrize(
    ("value", "least", "message"),
    [
        (1.0, None, "^size is 1.0; give a whole number$"),
        (True, 0, "^size is True; give a whole number of at least 0$"),
        ("3", 1, "^size is '3'; give a whole number of at least 1$"),
        (0, 1, "^size is 0; give a whole number of at least 1$"),
        (2**63, None, f"^size is {2**63}; give a whole number of at most {2**63 - 1}$"),
        (-LARGE, None, r"^size is -9+\.\.\.9+; give a whole number of at most"),
        pytest.param(
            10**5000, None, "^size is a number of more than 4300 digits; give a whole number of at most", id="huge"
        ),
        (META, None, "^size is tensor.*; give a whole number$"),
    ],
)
def test_what_is_no_whole_number_is_refused(value: object, least: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_whole(value, "size", least)
    assert len(str(caught.value)) < 200


def test_whole_numbers_pass() -> None:
    for value in (-3, 0, np.int32(7), 2**63 - 1):
        check_whole(value, "size")
    check_whole(1, "size", 1)


def test_items_of_anything_that_can_be_gone_through() -> None:
    assert as_items([1, 2], "list") == as_items(np.array([1, 2]), "list") == as_items(torch.tensor([1, 2]), "list")
    assert as_items((value for value in "ab"), "list") == ("a", "b")
    assert as_items(torch.tensor([[0, 1]]), "list") == ([0, 1],)


@pytest.mark.parametrize("value", [3, None, True, "ab", b"ab", {"a": 1}, torch.tensor(1), META, SPARSE])
def test_what_is_no_list_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(InputError, match=r"^edges is .*; give a list$"):
        as_items(value, "edges")


def test_arrays_become_plain_values_and_what_holds_nothing_none() -> None:
    assert as_plain(torch.tensor([1.5])) == [1.5]
    assert as_plain(np.float64(2.0)) == 2.0
    assert as_plain("text") == "text"
    assert as_plain(META) is None
    assert as_plain(SPARSE) is None
