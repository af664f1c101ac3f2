"""How much memory a file or an argument may claim."""

from __future__ import annotations

import pytest

from butfor.boundary.limits import array_bytes, check_size, limit
from butfor.errors import GraphError, InputError, ModelError


def test_the_limit_is_four_gib_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUTFOR_MAX_BYTES", raising=False)
    assert limit() == 4 * 2**30
    check_size(4 * 2**30, "this")
    with pytest.raises(GraphError, match=r"this would take 5 GiB of memory, and the limit is 4 GiB.*BUTFOR_MAX_BYTES="):
        check_size(5 * 2**30, "this")
    monkeypatch.setenv("BUTFOR_MAX_BYTES", str(6 * 2**30))
    check_size(5 * 2**30, "this")


def test_a_claim_of_any_size_is_told_in_one_short_line() -> None:
    with pytest.raises(ModelError, match="more than a million EiB") as caught:
        check_size(10**400, "this", ModelError)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["4GB", "-1", "0", "1e9", "²", "9" * 5000])
def test_a_limit_that_is_no_number_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUTFOR_MAX_BYTES", value)
    with pytest.raises(InputError, match="the environment variable BUTFOR_MAX_BYTES is"):
        check_size(1, "this")


def test_no_side_and_no_item_of_an_array_counts_as_nothing() -> None:
    assert array_bytes((3, 5), itemsize=16) == 240
    assert array_bytes((10**12, 0)) == 8 * 10**12
    assert array_bytes((4,), itemsize=0) == 32
