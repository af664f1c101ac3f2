"""The result store keeps whole lines, of one run, whatever happens."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from butfor.edits.deletion import Deletion
from butfor.errors import StoreError
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import to_line
from butfor.result.schema import READABLE
from butfor.result.status import Prediction, Status
from butfor.runs import Run, Store, read_results
from butfor.runs import store as store_module

if TYPE_CHECKING:
    from pathlib import Path

RUN = Run("a1b2", "c3d4", MethodRecord("Greedy", {"width": 64}), Goal(), "", 0, False)


def result(target: int, **changes: object) -> Counterfactual:
    plain = Counterfactual(
        target=target,
        status=Status.OPTIMAL,
        before=Prediction(1, "motif", 0.9),
        after=Prediction(0, "base", 0.8),
        edits=(Deletion(target, target + 1),),
        cost=1.0,
        lower_bound=1.0,
        task="node",
        nodes=9,
        edges=8,
        directed=False,
        goal=RUN.goal,
        method=RUN.method,
        evaluations=3,
        seed=0,
        space_id="",
        graph_id=RUN.graph_id,
        model_id=RUN.model_id,
    )
    return replace(plain, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@pytest.fixture
def full(path: Path) -> Path:
    """A file with the results of nodes 0 to 2."""
    with Store(path, RUN) as store:
        for target in range(3):
            store.append(result(target))
    return path


def test_results_come_back_equal_and_in_order(full: Path) -> None:
    assert read_results(full) == [result(0), result(1), result(2)]


def test_each_result_is_in_the_file_before_the_next(path: Path) -> None:
    with Store(path, RUN) as store:
        for target in range(3):
            store.append(result(target))
            assert len(path.read_bytes().splitlines()) == target + 1


def test_a_run_is_continued(full: Path) -> None:
    before = full.read_bytes()
    with Store(full, RUN) as store:
        assert list(store.done) == [0, 1, 2]
        assert store.done[1] == (Status.OPTIMAL, 1)
        assert store.notice == ""
        store.append(result(7))
        with pytest.raises(StoreError, match=r"node 7 is in .* already"):
            store.append(result(7))
    assert full.read_bytes().startswith(before)
    assert [item.target for item in read_results(full)] == [0, 1, 2, 7]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("graph_id", "ffff", r"another graph \(a1b2 instead of ffff\)"),
        ("model_id", "ffff", r"another model \(c3d4 instead of ffff\)"),
        ("method", MethodRecord("KeepEgo"), r"another method \(Greedy\(width=64\) instead of KeepEgo\(\)\)"),
        ("goal", Goal(wanted=1), r"another goal \(any other class instead of class 1\)"),
        ("space_id", "ffff", r"another edit space \(none instead of ffff\)"),
        ("seed", 1, r"another seed \(0 instead of 1\)"),
        ("directed", True, "directed or not"),
    ],
)
def test_a_file_of_another_run_is_refused_and_kept(full: Path, field: str, value: object, message: str) -> None:
    before = full.read_bytes()
    with pytest.raises(StoreError, match=message):
        Store(full, replace(RUN, **{field: value}))
    assert full.read_bytes() == before


def test_a_result_of_another_run_is_not_taken(full: Path) -> None:
    before = full.read_bytes()
    with Store(full, RUN) as store, pytest.raises(StoreError, match="another seed"):
        store.append(result(9, seed=4))
    assert full.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 5, 40, 300])
def test_an_interrupted_last_line_is_cut_off(full: Path, cut: int) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    full.write_bytes(b"".join(lines)[: -min(cut, len(lines[2]) - 1)])
    damaged = full.read_bytes()
    with pytest.warns(UserWarning, match=r"last line .* is incomplete"):
        assert read_results(full) == [result(0), result(1)]
    assert full.read_bytes() == damaged, "reading changes nothing"
    with Store(full, RUN) as store:
        assert list(store.done) == [0, 1]
        assert "cut off" in store.notice
        store.append(result(2))
    assert full.read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "damage", [b"{}\n", b"not json\n", b'{"schema": 1\n', b"\x00\xff\x00\n", b"\n", b"[" * 100_000 + b"\n"]
)
def test_a_damaged_line_in_the_middle_is_named_and_kept(full: Path, damage: bytes) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    lines[1] = damage
    full.write_bytes(b"".join(lines))
    before = full.read_bytes()
    for use in (lambda: Store(full, RUN), lambda: read_results(full)):
        with pytest.raises(StoreError, match="line 2 of"):
            use()
    assert full.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"dear diary", b"dear diary\n", b"\x7fELF\x00\x01\xff", b"a,b\n1,2\n", b'{"a": 1}', b"[]\n"]
)
def test_a_file_of_another_kind_is_never_touched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for use in (lambda: Store(path, RUN), lambda: read_results(path)):
        with pytest.raises(StoreError, match="line 1 of"):
            use()
    assert path.read_bytes() == content


def test_a_node_twice_is_refused(full: Path) -> None:
    full.write_bytes(full.read_bytes() * 2)
    for use in (lambda: Store(full, RUN), lambda: read_results(full)):
        with pytest.raises(StoreError, match=r"line 4 of .* repeats node 0"):
            use()


def test_another_schema_is_refused(path: Path) -> None:
    path.write_text(json.dumps({**result(0).to_dict(), "schema": 99}) + "\n")
    with pytest.raises(StoreError, match=r"line 1 of .*schema 99"):
        Store(path, RUN)


def test_two_runs_cannot_write_one_file(full: Path) -> None:
    with Store(full, RUN), pytest.raises(StoreError, match="another run is writing"):
        Store(full, RUN)
    with Store(full, RUN) as again:
        assert len(again.done) == 3


def test_a_disk_that_fills_up_leaves_whole_lines(full: Path) -> None:
    before = full.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(full, RUN) as store:
        # A real partial write: the file may grow by 100 bytes more, which is less than a line.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
        try:
            with pytest.raises(StoreError, match=r"cannot write .*; the 3 results in it are kept"):
                store.append(result(3))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert full.read_bytes() == before
        store.append(result(3))
    assert len(read_results(full)) == 4


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_a_write_that_is_broken_off_is_taken_back(
    full: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    before = full.read_bytes()
    with Store(full, RUN) as store:

        def half(file: int, content: bytes) -> int:
            os.pwrite(file, content[:50], len(before))
            raise problem

        monkeypatch.setattr(store_module.os, "write", half)
        with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
            store.append(result(3))
        monkeypatch.undo()
    assert full.read_bytes() == before
    if isinstance(problem, OSError):
        assert "No space left on device" in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_regular_file_is_refused_unopened(tmp_path: Path, kind: str) -> None:
    place = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(place)  # opening it to write would wait for a reader
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place))
    else:
        place.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="is no regular file but a pipe, socket or device"):
        Store(place, RUN)
    with pytest.raises(StoreError, match="no regular file"):
        read_results(place)
    assert place.exists()


def test_a_link_to_nothing_stays(tmp_path: Path, full: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "gone.jsonl")
    with pytest.raises(StoreError, match="is a link to nothing"):
        Store(link, RUN)
    assert link.is_symlink()
    assert not link.exists()
    link.unlink()
    link.symlink_to(full)
    with Store(link, RUN) as store:
        assert len(store.done) == 3


UNCERTAIN = [
    b"",
    b', "rows": [1, 2',
    b', "target": "mine", "status": "optimal"',
    b', "target": 3, "status": "my own"',
    b', "target": 3, "status": "found"',  # it may go on as "foundling"
]


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema": ',
        b'{"schema": "http://json-schema.org/draft-07/schema#", "title": "mine"',
        *(b'{"schema": %d' % schema + rest for schema in READABLE for rest in UNCERTAIN),
        b'{"schema": 25, "target": 3, "status": "found", ',
        b'{"schema": 1, "target": 3, "status": "found", ',
    ],
)
def test_an_incomplete_line_that_may_be_anything_is_never_cut(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for use in (lambda: Store(path, RUN), lambda: read_results(path)):
        with pytest.raises(StoreError, match=r"results\.jsonl"):
            use()
    assert path.read_bytes() == content


@pytest.mark.parametrize("schema", READABLE)
@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("target", [0, 12345, (3, 4)])
def test_the_first_line_of_a_run_is_cut_where_it_is_certainly_ours(
    path: Path, status: Status, target: int | tuple[int, int], schema: int
) -> None:
    whole = to_line(replace(result(0), target=target, status=status))
    path.write_bytes(whole[:70].replace(b'"schema": 3', b'"schema": %d' % schema))
    with pytest.warns(UserWarning, match="incomplete"):
        assert read_results(path) == []
    with Store(path, RUN) as store:
        assert "cut off" in store.notice
        assert not store.done
    assert path.read_bytes() == b""


def test_a_whole_result_of_another_run_is_kept_though_its_end_is_missing(path: Path) -> None:
    content = to_line(result(0, seed=7))[:-1]
    path.write_bytes(content)
    with pytest.raises(StoreError, match="another seed"):
        Store(path, RUN)
    assert path.read_bytes() == content


def test_a_file_made_for_nothing_goes_away(path: Path) -> None:
    with Store(path, RUN):
        assert path.exists()
    assert not path.exists()
    path.touch()
    with Store(path, RUN):
        pass
    assert path.exists(), "what was there before stays"


def test_places_that_cannot_be_written(tmp_path: Path, full: Path) -> None:
    before = full.read_bytes()
    for place, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "missing" / "results.jsonl", "there is no folder"),
        (full / "results.jsonl", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ]:
        with pytest.raises(StoreError, match=message):
            Store(place, RUN)
    assert full.read_bytes() == before
    with pytest.raises(StoreError, match=r"cannot read .*No such file"):
        read_results(tmp_path / "missing.jsonl")
    with pytest.raises(StoreError, match=r"cannot read .*it is a folder"):
        read_results(tmp_path)
