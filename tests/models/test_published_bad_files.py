"""Files of published weights that hold something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bad_files import check_refused, make_no_file
from butfor.errors import ModelError
from butfor.models import load_published

if TYPE_CHECKING:
    from pathlib import Path


PUBLISHED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no matrices": {"gc1.weight": np.ones(3), "lin.weight": np.ones(3)},
    "empty matrices": {"gc1.weight": np.ones((0, 2)), "lin.weight": np.ones((0, 0))},
    "numbers": {"gc1.weight": np.ones((2, 3), int), "lin.weight": np.ones((2, 9))},
    "long": {"gc1.weight": np.ones((2, 3), np.longdouble), "lin.weight": np.ones((2, 9))},
    "0-d": {"gc1.weight": np.ones((2, 3)), "lin.weight": np.ones((2, 9)), "gc2.weight": np.array(1.0)},
    "odd name": {"gc1.weight": np.ones((2, 3)), "lin.weight": np.ones((2, 9)), "gc1..weight": np.ones(2)},
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_weights_that_cannot_be_used(tmp_path: Path, case: str) -> None:
    np.savez(tmp_path / "w.npz", **PUBLISHED[case])
    check_refused(lambda: load_published(tmp_path / "w.npz"), ModelError, tmp_path, "w.npz")


@pytest.mark.parametrize("kind", ["pipe", "endless", "larger than memory", "folder"])
def test_published_weights_that_are_no_file(tmp_path: Path, kind: str) -> None:
    make_no_file(tmp_path / "w.npz", kind)
    check_refused(lambda: load_published(tmp_path / "w.npz"), ModelError, tmp_path, "w.npz")
