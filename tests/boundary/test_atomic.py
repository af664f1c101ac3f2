"""A file is there whole or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from butfor.boundary.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_written_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_after_any_problem_the_old_file_is_still_there_and_nothing_else(tmp_path: Path, problem: BaseException) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise problem

    with pytest.raises(type(problem)):
        write()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_file_has_ordinary_rights(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "file"):
        pass
    (tmp_path / "other").touch()
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "other")]
    assert rights[0] == rights[1]


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    with atomic_write(tmp_path / ("x" * 255)) as file:
        file.write(b"content")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "missing folder", "NUL"])
def test_places_that_nothing_may_take(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    elif kind == "folder":
        path.mkdir()
    elif kind == "missing folder":
        path = path / "file"
    else:
        path = tmp_path / "a\0b"
    before = sorted(entry.name for entry in tmp_path.iterdir())
    with pytest.raises(OSError, match=r".") as caught, atomic_write(path):
        pass
    assert caught.value.strerror
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before
