"""The result: its sentence, its dictionary form, equality; and the one verb that makes it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.deletion import Deletion
from butfor.errors import InputError, StoreError
from butfor.graph.node_names import names_of
from butfor.problem.goal import Goal
from butfor.result.counterfactual import Counterfactual
from butfor.result.method_record import MethodRecord
from butfor.result.status import Prediction, Status
from butfor.testing import brute_force, predict_without, random_problem

RESULT = Counterfactual(
    target=17,
    status=Status.FOUND,
    before=Prediction(1, "motif", 0.93),
    after=Prediction(0, "base", 0.81),
    edits=(Deletion(17, 20), Deletion(20, 21)),
    cost=2.0,
    lower_bound=1.0,
    task="node",
    nodes=30,
    edges=34,
    directed=False,
    goal=Goal(),
    method=MethodRecord("Greedy", {"width": 64}),
    evaluations=40,
    seed=0,
    space_id="",
    graph_id="a" * 16,
    model_id="b" * 16,
    seconds=0.1,
    versions={"butfor": "0.1.0"},
)
NOTHING = replace(RESULT, status=Status.UNKNOWN, after=None, edits=(), cost=0.0, lower_bound=2.0)


def test_sentences() -> None:
    assert str(RESULT) == (
        "Node 17 is predicted 'motif' (0.93). But for these 2 of its 34 edges it would be 'base' (0.81): 17–20, 20–21."
    )
    one = replace(RESULT, edits=(Deletion(17, 20),), directed=True)
    assert "But for this 1 of its 34 edges it would be 'base' (0.81): 17→20." in str(one)
    many = replace(RESULT, edits=tuple(Deletion(0, node) for node in range(1, 31)))
    assert str(many).endswith("0–12, and 18 more.")
    assert str(NOTHING) == (
        "Node 17 is predicted 'motif' (0.93). No counterfactual was found among its 34 edges; "
        "a counterfactual, if there is one, costs at least 2."
    )
    impossible = replace(NOTHING, status=Status.IMPOSSIBLE, lower_bound=None)
    assert str(impossible).endswith("No allowed edits change that; this is proved.")
    assert impossible.verdict == "It is proved that no allowed edits change the prediction."
    reached = replace(NOTHING, status=Status.REACHED, lower_bound=0.0)
    assert str(reached).endswith("That is what is wanted: nothing has to change.")
    assert all(status.sentence.endswith(".") and str(status) == status.value for status in Status)


def test_names_stand_for_positions() -> None:
    named = replace(RESULT, names=((17, "acct_3"), (20, "acct_7")))
    assert str(named).startswith("Node acct_3 is predicted")
    assert str(named).endswith(": acct_3–acct_7, acct_7–21.")
    assert (named.name(20), named.name(21)) == ("acct_7", "21")
    plain = json.loads(json.dumps(named.to_dict()))
    assert Counterfactual.from_dict(plain) == named
    del plain["names"]
    assert Counterfactual.from_dict(plain) == RESULT


def test_names_of_nodes() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert names_of(data, [2, 0]) == ()
    for ids in (["a", "b", "c"], ("a", "b", "c"), np.array(["a", "b", "c"])):
        data.node_ids = ids
        assert names_of(data, [2, 0, 2]) == ((0, "a"), (2, "c"))
    data.node_ids = torch.tensor([70, 5, 8])
    assert names_of(data, [0]) == ((0, "70"),)
    for ids in (["a"], torch.ones(3, 2), "abc"):
        data.node_ids = ids
        assert names_of(data, [0]) == ()


def test_a_pickle_leaves_the_graph_behind() -> None:
    model, data = random_problem(1)
    result = butfor.explain(model, data, 3)
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert (again.seconds, again.versions) == (result.seconds, result.versions)
    assert result._scene is not None
    assert again._scene is None
    with pytest.raises(InputError, match="give plot"):
        again.plot()


def test_size_is_of_what_was_found() -> None:
    assert (RESULT.size, RESULT.found, NOTHING.size, NOTHING.found) == (2, True, None, False)


def test_equality_ignores_how_long_it_took() -> None:
    assert replace(RESULT, seconds=9.0, versions={}) == RESULT
    assert replace(RESULT, edits=(Deletion(17, 20),)) != RESULT


@pytest.mark.parametrize("result", [RESULT, NOTHING, replace(NOTHING, status=Status.IMPOSSIBLE, lower_bound=None)])
def test_dictionary_form_survives_json(result: Counterfactual) -> None:
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    again = Counterfactual.from_dict(plain)
    assert again == result
    assert (again.seconds, again.versions) == (result.seconds, result.versions)
    assert plain["schema"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "has schema 99; this version reads schema 2"),
        ({"status": "perhaps"}, "status is 'perhaps', but must be one of optimal"),
        ({"colour": "red"}, r"unknown fields \['colour'\]"),
        ({"edits": []}, "contradicts itself"),
        ({"edits": [["swap", 1, 2]]}, r"\['swap', 1, 2\] is no edit"),
        ({"before": None}, "not a counterfactual"),
    ],
)
def test_foreign_dictionaries(change: dict, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Counterfactual.from_dict(RESULT.to_dict() | change)
    with pytest.raises(StoreError, match="no schema version"):
        Counterfactual.from_dict({})


def test_a_result_from_a_file_asks_for_its_graph() -> None:
    with pytest.raises(InputError, match="give plot"):
        RESULT.plot()


def test_explain_takes_one_node_several_or_a_mask() -> None:
    model, data = random_problem(1)
    one = butfor.explain(model, data, 3)
    assert isinstance(one, Counterfactual)
    assert butfor.explain(model, data, np.int64(3)) == one
    several = butfor.explain(model, data, [3, 1, 3])
    assert [result.target for result in several] == [3, 1, 3]
    assert several[0] == several[2] == one
    mask = torch.zeros(8, dtype=torch.bool)
    mask[[1, 3]] = True
    assert butfor.explain(model, data, mask) == [several[1], one]
    assert butfor.explain(model, data, torch.tensor([3, 1])) == several[:2]
    assert butfor.explain(model, data, []) == []


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (8, {}, r"node 8 is not in this graph \(0 to 7\)"),
        ([0, -1], {}, "node -1 is not in this graph"),
        (["a"], {}, "'a' is not a node"),
        ([1.5], {}, "1.5 is not a node"),
        (torch.ones(3, dtype=torch.bool), {}, "the graph has 8 nodes"),
        (0, {"method": "greedy"}, "give a method such as butfor.Exact"),
        (0, {"goal": Goal(wanted=3)}, "class 3 is wanted, but the model has classes 0 to 2"),
        (0, {"goal": Goal(least=-1.0)}, "least margin is -1"),
    ],
)
def test_arguments_that_make_no_sense(target, options: dict, message: str) -> None:
    model, data = random_problem(1)
    with pytest.raises(InputError, match=message):
        butfor.explain(model, data, target, **options)


def test_class_names_follow_the_data() -> None:
    model, data = random_problem(1)
    assert butfor.explain(model, data, 0).before.name.startswith("class ")
    data.class_names = ["red", "green", "blue"]
    assert butfor.explain(model, data, 0).before.name in data.class_names


@pytest.mark.slow
def test_wanted_class_and_margin_against_brute_force() -> None:
    checked = 0
    for seed in range(6):
        model, data = random_problem(seed, nodes=5, density=0.6)
        before = predict_without(model, data, ()).argmax(1)
        for wanted in range(3):
            truth = brute_force(model, data, wanted=wanted)
            for node in (before != wanted).nonzero().flatten().tolist():
                result = butfor.explain(model, data, node, butfor.Greedy(), goal=Goal(wanted=wanted))
                if result.size is not None:
                    assert result.size >= truth[node][0]
                    checked += 1
    assert checked > 10


def test_duplicates_self_loops_weights_and_isolated_nodes_together() -> None:
    model, _ = random_problem(0)
    pairs = [(0, 1), (1, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]
    weights = torch.tensor([1.0, 1.0, 0.5, 0.5, 2.0, 1.5, 1.5, 1.0, 1.0, 3.0, 3.0])
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, edge_index=torch.tensor(pairs).T.contiguous(), edge_weight=weights)
    for method in (butfor.Greedy(), butfor.CFGNN(epochs=50), butfor.RandomPerturbation()):
        results = butfor.explain(model, data, range(6), method)
        assert results[4].status is results[5].status is Status.IMPOSSIBLE
        for result in results:
            if result.after is None:
                continue
            gone = {pair for u, v in result.removed_edges for pair in ((u, v), (v, u))}
            kept = [number for number, pair in enumerate(pairs) if pair not in gone]
            with torch.no_grad():
                after = model(x, data.edge_index[:, kept], weights[kept])[result.target]
            assert int(after.argmax()) == result.after.label != result.before.label
            assert result.after.probability == pytest.approx(float(after.softmax(0).max()), abs=1e-5)
    assert any(result.found for result in butfor.explain(model, data, range(6)))


def test_import_is_light() -> None:
    code = (
        "import sys, butfor; heavy = {'torch', 'torch_geometric'} & set(sys.modules); "
        "butfor.explain, butfor.datasets, butfor.models, butfor.CFGNN; "
        "heavy |= {'matplotlib', 'polars', 'rich', 'cyclopts'} & set(sys.modules); print(sorted(heavy))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(butfor, name) is not None for name in butfor.__all__)
    assert dir(butfor) == sorted(butfor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        butfor.explian  # noqa: B018


@pytest.mark.parametrize(
    "goal",
    ["class 1", "any other class, by at least 0.5", "class 2, with a probability of at least 0.9"],
)
def test_no_sentence_claims_more_than_was_proved(goal: str) -> None:
    """What was proved is about the goal, and about costs where edits have them."""
    impossible = replace(NOTHING, status=Status.IMPOSSIBLE, lower_bound=None, goal=goal)
    for said in (impossible.verdict, str(impossible)):
        assert f"no allowed edits reach the goal ({goal})" in said.replace("No allowed", "no allowed")
        assert "change" not in said
    optimal = replace(RESULT, goal=goal, lower_bound=RESULT.cost, status=Status.OPTIMAL)
    assert optimal.verdict.endswith(f"no smaller one reaches the goal ({goal}).")
    dear = replace(optimal, space_id="c" * 16)
    assert dear.verdict.endswith(f"no cheaper one reaches the goal ({goal}).")
    assert "smaller" not in dear.verdict + str(dear)
    assert "cheaper" in replace(RESULT, space_id="c" * 16, status=Status.FOUND).verdict
    assert not any(word in status.sentence for status in Status for word in ("smaller", "change the prediction"))
