"""Reading files that may be damaged, of another kind, or no files at all."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from bad_files import NOT_JSON, check_refused, make_no_file
from butfor.boundary.reading import check_file, read_bytes, read_json, reading
from butfor.errors import InputError, ModelError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

# JSON, though not an object: whoever reads it has to see that.
OTHER_JSON = {"number": 7, "null": None, "list": [], "text": "abc"}


class Panic(BaseException):
    """Such as polars raises."""


@pytest.mark.parametrize(
    "problem", [MemoryError(), RecursionError("a\nb"), KeyError("x"), Panic("gone"), OSError(5, "bad"), OSError()]
)
def test_whatever_a_parser_raises_becomes_one_line_about_the_file(problem: BaseException) -> None:
    with pytest.raises(StoreError, match="file") as caught, reading("file", StoreError):
        raise problem
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_and_exit_are_let_through(stop: type[BaseException]) -> None:
    with pytest.raises(stop), reading("file", StoreError):
        raise stop


def test_an_error_that_is_ours_already_stays_as_it_is() -> None:
    with pytest.raises(InputError, match=r"^as it is$"), reading("file", StoreError):
        raise InputError("as it is")


def test_a_long_story_is_cut_short() -> None:
    with pytest.raises(StoreError) as caught, reading("file", StoreError, "as .npz"):
        raise ValueError("word " * 1000)
    assert str(caught.value).startswith("file cannot be read as .npz: word word")
    assert len(str(caught.value)) < 350


@pytest.mark.parametrize("kind", ["pipe", "broken link", "endless", "larger than memory", "folder"])
def test_what_is_no_file_is_refused_unopened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    make_no_file(path, kind)
    for read in (check_file, read_bytes, read_json):
        check_refused(lambda read=read: read(path, ModelError), ModelError, tmp_path, str(path))


def test_a_pipe_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b'{"a": 1}',))
    writer.start()
    assert read_json(path, InputError, pipe=True) == {"a": 1}
    writer.join()


@pytest.mark.parametrize("case", NOT_JSON)
def test_json(tmp_path: Path, case: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(NOT_JSON[case])
    if case in OTHER_JSON:
        assert read_json(path, ModelError) == OTHER_JSON[case]
    else:
        check_refused(lambda: read_json(path, ModelError), ModelError, tmp_path, "file.json cannot be read as JSON")
