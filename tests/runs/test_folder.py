"""A folder of results: shards that are whole or not there, of one run, each target once."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from butfor.errors import InputError, StoreError
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.status import Status
from butfor.runs import Folder, Run, Store, load_results, read_results
from butfor.runs import folder as folder_module
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from pathlib import Path

    import butfor
    from butfor.runs.shards import Format

RUN = Run(RESULT.graph_id, RESULT.model_id, RESULT.method, Goal(), "", 0, False)
FORMATS = ["jsonl", "parquet"]


def result(target: int) -> butfor.Counterfactual:
    one = RESULT if target % 3 else NOTHING
    return (
        replace(one, target=target, status=Status.FAILED, note="no luck")
        if target == 6
        else replace(one, target=target)
    )


def write(path: Path, targets: range, format: Format | None = None, run: Run = RUN) -> None:
    with Folder(path, run, Budget(), format) as folder:
        for target in targets:
            folder.append(result(target))


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> Format:
    return request.param


@pytest.fixture
def full(tmp_path: Path, format: Format) -> Path:
    """The results of nodes 0 to 9, in two shards."""
    write(tmp_path / "results", range(7), format)
    write(tmp_path / "results", range(7, 10))
    return tmp_path / "results"


def test_results_come_back_equal(full: Path, format: Format) -> None:
    assert sorted(path.name for path in full.glob("part-*"))[0].endswith(format)
    assert len(list(full.glob("part-*"))) == 2
    assert sorted(read_results(full), key=lambda one: one.target) == [result(target) for target in range(10)]


def test_a_run_is_continued_with_what_is_missing(full: Path) -> None:
    before = {path: path.read_bytes() for path in full.glob("part-*")}
    with Folder(full, RUN, Budget()) as folder:
        assert sorted(folder.done) == list(range(10))
        assert folder.done[1] == (Status.FOUND, 2)
        assert folder.notice == ""
        with pytest.raises(StoreError, match=r"node 3 is in .* already"):
            folder.append(result(3))
        folder.append(result(12))
    assert all(path.read_bytes() == content for path, content in before.items())
    assert sorted(one.target for one in load_results(full)) == [*range(10), 12]


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [
        ({"graph_id": "ffff"}, Budget(), r"another graph \(\"a+\" instead of \"ffff\"\)"),
        ({"model_id": "ffff"}, Budget(), "another model"),
        ({"method": MethodRecord("KeepEgo")}, Budget(), "another method"),
        ({"goal": Goal(wanted=1)}, Budget(), "another goal"),
        ({"space_id": "ffff"}, Budget(), r"another edit space \(none instead of \"ffff\"\)"),
        ({"seed": 1}, Budget(), r"another seed \(0 instead of 1\)"),
        ({"directed": True}, Budget(), "another directed"),
        ({}, Budget(7), "another budget"),
    ],
)
def test_another_run_is_refused_and_nothing_changes(full: Path, changes: dict, budget: Budget, message: str) -> None:
    before = {path: path.read_bytes() for path in full.iterdir()}
    with pytest.raises(StoreError, match=message):
        Folder(full, replace(RUN, **changes), budget)
    assert {path: path.read_bytes() for path in full.iterdir()} == before


def test_a_setting_that_a_method_got_later_is_no_difference(tmp_path: Path) -> None:
    write(tmp_path / "results", range(3))
    later = replace(RUN, defaults={"depth": 3}, method=MethodRecord("Greedy", {"width": 64, "depth": 3}))
    with Folder(tmp_path / "results", later, Budget()) as folder:
        assert len(folder.done) == 3
    other = replace(later, method=MethodRecord("Greedy", {"width": 64, "depth": 4}))
    with pytest.raises(StoreError, match="another method"):
        Folder(tmp_path / "results", other, Budget())


def test_other_versions_are_pointed_out(tmp_path: Path) -> None:
    write(tmp_path / "results", range(3))
    manifest = tmp_path / "results" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"torch": "', '"torch": "0.'))
    with Folder(tmp_path / "results", RUN, Budget()) as folder:
        assert "begun with other versions" in folder.notice


def test_another_format_is_refused(full: Path, format: Format) -> None:
    (other,) = {*FORMATS} - {format}
    with pytest.raises(StoreError, match="another format"):
        Folder(full, RUN, Budget(), other)


def test_what_a_killed_run_left_is_not_read(full: Path, format: Format) -> None:
    (full / f".part-00ff.{format}.abc.tmp").write_bytes(b'{"schema": 3, "tar')
    assert len(load_results(full)) == 10
    write(full, range(10, 12))
    assert len(load_results(full)) == 12


def test_a_damaged_shard_is_named(full: Path) -> None:
    shard = min(full.glob("part-*"))
    shard.write_bytes(shard.read_bytes()[:-20])
    with pytest.raises(StoreError, match=rf"{shard.name} is (damaged|incomplete): delete it"):
        read_results(full)


def test_shards_are_written_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MOST", 4)
    with Folder(tmp_path / "results", RUN) as folder:
        for target in range(10):
            folder.append(result(target))
            assert len(list((tmp_path / "results").glob("part-*"))) == (target + 1) // 4
    monkeypatch.setattr(folder_module, "SECONDS", -1.0)
    with Folder(tmp_path / "results", RUN) as folder:
        folder.append(result(20))
        assert len(list((tmp_path / "results").glob("part-*"))) == 4


def test_the_same_shard_written_twice_is_there_once(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write(tmp_path / name, range(5))
    (shard,) = (tmp_path / "first").glob("part-*")
    (tmp_path / "second" / shard.name).write_bytes(shard.read_bytes())
    assert len(list((tmp_path / "second").glob("part-*"))) == 1
    # Two runs that did not see each other have shards that overlap: each target still counts once.
    (tmp_path / "second" / "part-0000000000000000.jsonl").write_bytes(shard.read_bytes())
    assert len(load_results(tmp_path / "second")) == 5


def test_a_folder_made_for_nothing_goes_away(tmp_path: Path) -> None:
    with Folder(tmp_path / "results", RUN):
        assert (tmp_path / "results").is_dir()
    assert not (tmp_path / "results").exists()


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    with Folder(tmp_path / "results", RUN), pytest.raises(StoreError, match="another run is writing"):
        Folder(tmp_path / "results", RUN)


def test_places_that_are_no_folder_of_results(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for place, message in [
        (tmp_path, "is a folder; give a file such as"),
        (tmp_path / "file", "is a file"),
        (tmp_path / "missing" / "results", "there is no folder"),
    ]:
        with pytest.raises(StoreError, match=message):
            Folder(place, RUN)
    for damage in ("[]", "{}", "{", '{"layout": 99}'):
        folder = tmp_path / "damaged"
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").write_text(damage)
        with pytest.raises(StoreError, match=r"manifest\.json"):
            Folder(folder, RUN)


def test_results_are_a_sequence_that_can_be_filtered(full: Path) -> None:
    results = load_results(full)
    assert (len(results), bool(results)) == (10, True)
    assert results[0] == next(iter(results))
    assert results[-1] == list(results)[-1]
    assert results[2:4] == list(results)[2:4]
    with pytest.raises(IndexError, match="there are 10 results"):
        results[10]
    assert {one.target for one in results.where(targets=[3, 4, 99])} == {3, 4}
    assert {one.target for one in results.where(status="failed")} == {6}
    assert {one.target for one in results.where(status=[Status.FAILED, Status.UNKNOWN])} == {0, 3, 6, 9}
    assert not results.where(targets=[99])


def test_results_as_a_table(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = load_results(full).to_frame().sort("target")
    assert frame["target"].to_list() == list(range(10))
    assert frame["status"].to_list()[5:7] == ["found", "failed"]
    assert frame["size"].to_list()[:3] == [None, 2, 2]
    assert frame["before"].to_list()[5:7] == ["motif", None]
    assert json.loads(frame["edits"][1]) == [edit.plain for edit in RESULT.edits]
    with Store(tmp_path / "one.jsonl", RUN) as store:
        for target in range(10):
            store.append(result(target))
    assert load_results(tmp_path / "one.jsonl").to_frame().sort("target").equals(frame)
    with pytest.raises(InputError, match="tables of 'arrow'"):
        load_results(full).to_frame("arrow")
    # Where pandas is installed PyG imports it, so it is not among what is installed for tests.
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed; run: pip install pandas"):
        load_results(full).to_frame("pandas")
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda data, columns: (data, columns)))
    made, columns = load_results(full).to_frame("pandas")
    assert columns == frame.columns == list(made)
    assert made["status"] == load_results(full).to_frame()["status"].to_list()


def test_a_file_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with Store(path, RUN) as store:
        for target in range(3):
            store.append(result(target))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.warns(UserWarning, match="incomplete and left out"):
        assert [one.target for one in load_results(path)] == [0, 1]
