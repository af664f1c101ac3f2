"""Plain data that are no edit."""

from __future__ import annotations

from typing import Any

import pytest

from butfor.boundary.json_values import Misfit
from butfor.edits.edit import read_edit


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "None is no edit"),
        (3, "3 is no edit"),
        ("delete", "'delete' is no edit"),
        ([], r"\[\] is no edit"),
        (["swap", 1, 2], r"\['swap', 1, 2\] is no edit"),
        ([["add"], 1, 2], "is no edit"),
        (["delete"], r"a deletion has two ends and perhaps a relation, not \[\]"),
        (["delete", 1.5, 2], r"a node in the deletion \[1.5, 2\] is 1.5, but must be a whole number"),
        (["add", True, 2], r"a node in the addition \[True, 2\] is True, but must be a whole number"),
        (["add", 1], r"an addition has two ends and perhaps a relation, not \[1\]"),
        (["add", 1, 2, 3], "a relation is 3, but must be a list of 3"),
        (["change", 1, 2, 3], r"a change has a node, a feature and two values, not \[1, 2, 3\]"),
        (["change", 1, 2, 3, 4, 5], "a node type is 5, but must be text"),
        (["change", 1, 2, 3, "4"], "a value in the change .* is '4', but must be a finite number"),
    ],
)
def test_no_edit(plain: Any, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        read_edit(plain)
