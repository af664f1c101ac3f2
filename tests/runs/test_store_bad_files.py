"""Files of results that are no files, or hold something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bad_files import NOT_JSON, check_refused, make_no_file
from butfor.errors import StoreError
from butfor.runs import read_results

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", [case for case in NOT_JSON if case != "empty"])  # which holds no results
def test_lines_that_are_no_results(tmp_path: Path, case: str) -> None:
    (tmp_path / "results.jsonl").write_bytes(NOT_JSON[case])
    check_refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, "results.jsonl")


@pytest.mark.parametrize("kind", ["pipe", "endless", "larger than memory", "folder"])
def test_results_that_are_no_file(tmp_path: Path, kind: str) -> None:
    make_no_file(tmp_path / "results.jsonl", kind)
    check_refused(lambda: read_results(tmp_path / "results.jsonl"), StoreError, tmp_path, "results.jsonl")
