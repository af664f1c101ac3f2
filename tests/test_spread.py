"""The same results wherever targets are explained; one that fails says why, and the others go on."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.errors import GraphError, InputError, ModelError
from butfor.executors import Processes, Serial
from butfor.spread import DIED, HOPELESS
from fragile import Fragile, Homebody
from larger_graphs import ladder
from shard_work import Killer
from task_cases import GraphModel

if TYPE_CHECKING:
    from pathlib import Path

    from butfor.session import Session

NODES = range(120)


@pytest.fixture(scope="module")
def session() -> Session:
    return butfor.prepare(*ladder())


@pytest.mark.parametrize("method", [butfor.Exact(), butfor.CFGNN(epochs=20), butfor.RandomPerturbation()])
def test_shards_change_nothing(session: Session, method: butfor.methods.Method) -> None:
    assert session.explain(NODES, method, seed=3, executor=Serial()) == session.explain(NODES, method, seed=3)


def test_processes_give_the_same_results_in_the_same_order(session: Session) -> None:
    targets = [*reversed(NODES), 5, 5]
    results = session.explain(targets, jobs=2)
    assert results == session.explain(targets)
    assert results[0].to_dict().keys() == session.explain(0).to_dict().keys()
    assert results[0]._context is not None  # it can be drawn


@pytest.mark.slow
def test_another_edit_space_travels_too() -> None:
    model, data = ladder()
    space, otherwise = butfor.EditSpace(protected=list(zip(*data.edge_index.tolist(), strict=True))), butfor.EditSpace()
    settings = {"method": butfor.Greedy(), "space": space, "otherwise": otherwise}
    results = butfor.explain(model, data, range(20), **settings, jobs=2)
    assert results == butfor.explain(model, data, range(20), **settings)
    assert any(result.otherwise for result in results)


@pytest.mark.slow
def test_graphs_in_processes() -> None:
    torch.manual_seed(0)
    graphs = []
    for size in range(4, 16):
        ends = torch.arange(size - 1)
        ring = torch.stack([ends, ends + 1])
        graphs.append(Data(x=torch.randn(size, 3), edge_index=torch.cat([ring, ring.flip(0)], dim=1)))
    model = GraphModel("GCN").eval()
    assert butfor.explain(model, graphs, jobs=2) == butfor.explain(model, graphs)


@pytest.mark.slow
def test_a_class_of_a_script_travels(tmp_path: Path) -> None:
    """Without the usual guard, and with a model that no worker can import."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, butfor\n"
        "from larger_graphs import ladder\n"
        "class Mine(torch.nn.Module):\n"
        "    def __init__(self, inner):\n"
        "        super().__init__()\n"
        "        self.inner = inner\n"
        "    def forward(self, x, edge_index):\n"
        "        return self.inner(x, edge_index) + 1\n"
        "model, data = ladder(30)\n"
        "model = Mine(model).eval()\n"
        "assert butfor.explain(model, data, range(30), jobs=2) == butfor.explain(model, data, range(30))\n"
        "print('same')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "same\n", done.stderr


@pytest.mark.parametrize("executor", [Serial(), pytest.param(Processes(2), marks=pytest.mark.slow)])
def test_a_target_that_fails_says_why_and_the_others_go_on(session: Session, executor: butfor.Processes) -> None:
    method = Fragile(raises=(7, 8, 90))
    results = session.explain(NODES, method, executor=executor)
    for node, result in zip(NODES, results, strict=True):
        if node in method.raises:
            assert result.status is butfor.Status.FAILED
            assert result.note == f"RuntimeError: no luck with {node}"
            assert str(result) == f"Node {node} could not be explained: RuntimeError: no luck with {node}"
            assert butfor.Counterfactual.from_dict(result.to_dict()) == result
        else:
            assert result == session.explain(node, method)


@pytest.mark.slow
def test_a_target_that_kills_its_process_says_so(session: Session) -> None:
    results = session.explain(NODES, Fragile(kills=(33,)), jobs=2)
    assert [result.target for result in results if result.status is butfor.Status.FAILED] == [33]
    assert results[33].note == DIED
    rest = [result for result in results if result.target != 33]
    assert [result.edits for result in rest] == [session.explain(one.target, butfor.Greedy()).edits for one in rest]


@pytest.mark.slow
def test_processes_that_are_killed_now_and_then(session: Session) -> None:
    method = Fragile(seconds=0.1)
    nodes = [node for node in NODES for _ in range(4)]
    # Twenty times in tests/executors, where workers start quickly.
    killer = Killer(4, seed=1, pause=1.0)
    found = {}
    for position, result in session.stream(nodes, method, executor=Processes(2)):
        assert position not in found
        found[position] = result
        workers = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "popen_loky"], capture_output=True, text=True)
        pids = [int(pid) for pid in workers.stdout.split()]
        if pids:
            killer.saw(pids[position % len(pids)])
    assert killer.killed == 4
    serial = {node: session.explain(node, Fragile(seconds=0.1)) for node in NODES}
    assert [found[position] for position in range(len(nodes))] == [serial[node] for node in nodes]


def test_where_all_fail_the_error_is_raised(session: Session) -> None:
    for nodes in (range(3), range(HOPELESS + 40), [5]):
        with pytest.raises(ModelError, match=r"node \d+ cannot be explained, nor any other .*no luck with"):
            session.explain(nodes, Fragile(raises=(-1,)), executor=Serial())
    with pytest.raises(RuntimeError, match="no luck with 5"):
        session.explain(5, Fragile(raises=(5,)))
    with pytest.raises(RuntimeError, match="no luck with 5"):
        session.explain(range(10), Fragile(raises=(5,)))


def test_senseless_arguments_raise_before_anything_starts(session: Session) -> None:
    model, data = ladder()
    for settings, message in [
        ({"target": [5, 500]}, "500"),
        ({"target": 5, "jobs": 0}, "jobs is 0"),
        ({"target": 5, "jobs": 2, "executor": Serial()}, "given together"),
    ]:
        with pytest.raises(InputError, match=message):
            butfor.explain(model, data, **{"jobs": 2, **settings})
    with pytest.raises(GraphError):
        butfor.explain(model, Data(x=data.x, edge_index=data.edge_index + 1000), [1, 2], jobs=2)
    torch.manual_seed(0)
    with pytest.raises(InputError, match=r"cannot be sent to another process \(TypeError: no GPU handles"):
        butfor.explain(Homebody(4, 8, 2, 3).eval(), data, [1, 2], jobs=2)
