"""A file and a folder of results are continued alike, also where earlier targets failed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from butfor.problem.goal import Goal
from butfor.result.status import Status
from butfor.runs import Folder, Run, Store, load_results
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from pathlib import Path

    import butfor

RUN = Run(RESULT.graph_id, RESULT.model_id, RESULT.method, Goal(), "", 0, False)


def failed(target: int, note: str = "no luck") -> butfor.Counterfactual:
    return replace(NOTHING, target=target, status=Status.FAILED, note=note)


@pytest.fixture(params=[Store, Folder])
def kind(request: pytest.FixtureRequest) -> type[Store] | type[Folder]:
    return request.param


@pytest.fixture
def path(kind: type[Store] | type[Folder], tmp_path: Path) -> Path:
    """The results of nodes 0 to 3, of which 1 and 2 failed."""
    path = tmp_path / "results"
    with kind(path, RUN) as sink:
        for target in range(4):
            sink.append(failed(target) if target in (1, 2) else replace(RESULT, target=target))
    return path


def read(path: Path) -> dict[int, tuple[Status, str]]:
    results = list(load_results(path))
    assert len({result.target for result in results}) == len(results)
    return {result.target: (result.status, result.note) for result in results}


def test_what_failed_is_done_again_only_if_that_is_wanted(kind: type[Store] | type[Folder], path: Path) -> None:
    with kind(path, RUN) as sink:
        assert sorted(sink.done) == [0, 1, 2, 3]
    with kind(path, RUN, retry_failed=True) as sink:
        assert sorted(sink.done) == [0, 3]
        sink.append(replace(RESULT, target=1))
        sink.append(failed(2, "no luck again"))
    after = read(path)
    assert after.pop(2)[0] is Status.FAILED
    assert after == dict.fromkeys((0, 1, 3), (Status.FOUND, ""))
    with kind(path, RUN) as sink:
        assert sorted(sink.done) == [0, 1, 2, 3]
        assert sink.done[1].status is Status.FOUND
    with kind(path, RUN, retry_failed=True) as sink:
        assert sorted(sink.done) == [0, 1, 3]


def test_an_earlier_failure_stays_until_there_is_something_else(kind: type[Store] | type[Folder], path: Path) -> None:
    before = read(path)
    with kind(path, RUN, retry_failed=True) as sink:
        assert 1 not in sink.done
    assert read(path) == before
    assert load_results(path).where(status="failed").to_frame()["target"].to_list() == [1, 2]
