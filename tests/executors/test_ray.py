"""On Ray everything is as with processes. A cluster is started once, on this machine."""

from __future__ import annotations

import pytest

import butfor
from butfor.errors import InputError
from butfor.executors import Ray
from butfor.executors.run import run
from larger_graphs import ladder
from shard_work import Killer, Squares, Unwelcome, raising

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own


def test_an_item_that_kills_its_actors_is_found_and_the_rest_is_done(ray: Ray) -> None:
    shards = [list(range(start, start + 7)) for start in range(0, 70, 7)]
    found = {}
    for items, results in run(ray, Squares(deadly=(38,)), shards):
        assert not found.keys() & set(items)
        found |= dict.fromkeys(items) if results is None else dict(zip(items, [one for one, _ in results], strict=True))
    assert found == {item: None if item == 38 else item**2 for item in range(70)}


def test_actors_that_are_killed_at_twenty_random_moments(ray: Ray) -> None:
    killer = Killer(20, seed=0, pause=0.3)
    shards = [list(range(start, start + 5)) for start in range(0, 2500, 5)]
    found: dict[int, int] = {}
    for items, results in run(ray, Squares(seconds=0.02), shards):
        for item, (square, _) in zip(items, results, strict=True):
            assert item not in found
            found[item] = square
        killer.saw(results[-1][1])
    assert killer.killed == 20
    assert found == {item: item**2 for item in range(2500)}


def test_errors_are_raised(ray: Ray) -> None:
    with pytest.raises(ZeroDivisionError):
        list(run(ray, raising, [[1], [2]]))
    with pytest.raises(InputError, match="there is no such model here"):
        list(run(ray, Unwelcome(), [[1], [2]]))


def test_results_are_those_of_this_process(ray: Ray) -> None:
    model, data = ladder()
    serial = butfor.explain(model, data, range(data.num_nodes))
    assert butfor.explain(model, data, range(data.num_nodes), executor=ray) == serial


def test_senseless_arguments() -> None:
    with pytest.raises(InputError, match="workers is 0"):
        Ray(workers=0)
