"""What counts as another prediction: any other class or a wanted one, by a margin, a probability or a threshold."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SimpleConv, global_add_pool

import butfor
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.methods import Exact
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from butfor.runs import Run
from butfor.session import Session
from butfor.testing import predict_without, random_problem
from task_cases import CommonNeighbours, NodeModel
from votes import Votes, both, path, voters


@pytest.mark.parametrize("scores", [[2.0, 1.0, -1.0], [1.0, 3.0, 2.0], [0.5, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -2.0]])
@pytest.mark.parametrize("goal", [Goal(), Goal(wanted=1), Goal(wanted=0)])
def test_the_slope_of_a_margin_is_its_derivative(goal: Goal, scores: list[float]) -> None:
    leaf = torch.tensor([scores], dtype=torch.float64, requires_grad=True)
    (truth,) = torch.autograd.grad(goal.margin(leaf, 0).sum(), leaf)
    assert goal.slope(leaf.detach().numpy()[0], 0).tolist() == pytest.approx(truth[0].tolist())


def test_scores_that_are_no_numbers_reach_no_goal() -> None:
    nothing = torch.tensor([[float("nan"), 1.0], [torch.inf, 0.0], [0.0, 1.0]])
    assert Goal().judge(nothing, 1)[1].tolist() == [False, False, False]
    assert Goal().judge(nothing, 0)[1].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal(wanted=2), "class 2 is wanted, but the model has classes 0 to 1"),
        (Goal(wanted=-1), "class -1 is wanted"),
        (Goal(least=-0.25), r"least margin is -0\.25"),
        (Goal(least=float("nan")), "least margin is nan"),
        (Goal(probability=1.0), r"least probability is 1\.0"),
        (Goal(probability=0.0), r"least probability is 0\.0"),
        (Goal(probability=-3.0), r"least probability is -3\.0"),
        (Goal(wanted="x"), "'x' is no class"),
        (Goal(wanted=1.5), r"class 1\.5 is wanted; give the number of a class"),
        (Goal(wanted=True), "class True is wanted; give the number of a class"),
        (Goal(least="a"), "least of the goal is 'a'"),
    ],
)
def test_goals_that_make_no_sense_are_refused(goal: Goal, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(Votes(), voters([1, 2], [(0, 1)]), 0, goal=goal)


def test_a_least_margin_and_a_least_probability_are_kept() -> None:
    data = voters([-0.25, 0.5, 0.5, 0.5, 0.5], [(0, i) for i in range(1, 5)])

    def sizes(**goal: float) -> int | None:
        return butfor.explain(Votes(), data, 0, goal=Goal(**goal)).size

    # With k votes left the sum is k / 2 - 1 / 4, and the margin twice that.
    assert sizes() == 4
    data.x[0] = -1.25
    assert [sizes(least=margin) for margin in (0.0, 0.4, 0.6, 1.4, 1.6, 2.4, 2.6)] == [2, 2, 3, 3, 4, 4, None]
    chances = [float(torch.tensor(2 * total).sigmoid()) for total in (0.25, 0.75, 1.25)]
    assert [sizes(probability=chance - 0.01) for chance in chances] == [2, 3, 4]
    assert [sizes(probability=chance + 0.01) for chance in chances] == [3, 4, None]


def test_what_is_no_goal_is_refused() -> None:
    with pytest.raises(InputError, match=r"goal is 1; give a butfor\.Goal"):
        butfor.explain(Votes(), voters([1, 2], [(0, 1)]), 0, goal=1)


# A class that is wanted.


def named_problem() -> tuple[nn.Module, Data]:
    model, data = random_problem(4)
    data.class_names = ["cat", "dog", "bird"]
    return model, data


def test_a_wanted_class_by_name() -> None:
    model, data = named_problem()
    for number, name in enumerate(data.class_names):
        by_number = butfor.explain(model, data, 0, goal=butfor.Goal(wanted=number))
        assert butfor.explain(model, data, 0, goal=butfor.Goal(wanted=name)) == by_number
    with pytest.raises(InputError, match=r"'cow' is no class of this graph \(cat, dog, bird\)"):
        butfor.explain(model, data, 0, goal=butfor.Goal(wanted="cow"))


def test_a_target_that_is_as_wanted_gets_a_result_and_stops_no_other() -> None:
    model, data = named_problem()
    before = predict_without(model, data, ()).argmax(1).tolist()
    wanted = before[0]
    results = butfor.explain(model, data, range(data.num_nodes), goal=butfor.Goal(wanted=wanted))
    assert [result.status.value == "reached" for result in results] == [label == wanted for label in before]
    reached = results[0]
    assert (reached.found, reached.size, reached.cost, reached.edits) == (False, None, 0.0, ())
    assert str(reached).endswith("That is what is wanted: nothing has to change.")
    assert Counterfactual.from_dict(reached.to_dict()) == reached
    # Predicted so, but not as likely as it must be: not reached yet.
    sure = butfor.explain(model, data, 0, goal=butfor.Goal(wanted=wanted, probability=0.999))
    assert sure.status.value != "reached"


def test_a_graph_that_is_predicted_as_wanted_already_stops_no_other() -> None:
    class Total(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = SimpleConv("sum")

        def forward(self, x, edge_index, batch):
            total = global_add_pool(x + self.layer(x, edge_index), batch)
            return torch.cat([-total, total], dim=1)

    graphs = [Data(x=torch.full((2, 1), sign), edge_index=both([(0, 1)])) for sign in (-1.0, -1.0, 1.0)]
    results = butfor.explain(Total(), graphs, goal=Goal(wanted=1))
    assert [result.status.value for result in results] == ["impossible", "impossible", "reached"]
    assert results[0].verdict == "It is proved that no allowed edits reach the goal (class 1)."
    assert str(results[0]).endswith("No allowed edits reach the goal (class 1); this is proved.")


def test_a_link_that_is_predicted_as_wanted_already_stops_no_other() -> None:
    data = Data(x=torch.eye(4), edge_index=both([(0, 2), (1, 2)]))
    results = butfor.explain(CommonNeighbours(), data, [Pair(0, 3), Pair(0, 1)], goal=Goal(wanted=1, threshold=0.0))
    assert [result.status.value for result in results] == ["impossible", "reached"]


# A threshold for numbers.


class Sums(torch.nn.Module):
    """The sum of a node's own feature and its neighbours', in one of the shapes that models return."""

    def __init__(self, flat: bool = False) -> None:
        super().__init__()
        self.layer, self.flat = SimpleConv("sum"), flat

    def forward(self, x, edge_index):
        out = x + self.layer(x, edge_index)
        return out[:, 0] if self.flat else out


@pytest.mark.parametrize("flat", [False, True])
def test_a_regression_crosses_its_threshold_by_as_much_as_was_asked(flat: bool) -> None:
    data = Data(x=torch.ones(5, 1), edge_index=both([(0, i) for i in range(1, 5)]))

    def explained(**goal: float) -> Counterfactual:
        return butfor.explain(Sums(flat), data, 0, goal=Goal(**goal))

    # Node 0 is 5, and loses 1 with each edge.
    sizes = [explained(threshold=4.5, least=least).size for least in (0.0, 0.25, 0.75, 1.25, 3.25, 3.75)]
    assert sizes == [1, 1, 2, 2, 4, None]
    result = explained(threshold=3.5, least=0.75)
    assert (result.before.value, result.after.value, result.size) == (5.0, 2.0, 3)
    assert (result.before.name, result.after.name) == ("above 3.5", "at most 3.5")
    assert (result.before.label, result.after.label) == (1, 0)
    assert result.before.probability is None
    assert result.goal == Goal(threshold=3.5, least=0.75)
    assert "above or below 3.5, by at least 0.75" in str(result.goal)


def test_what_is_equal_to_the_threshold_is_not_above_it() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (0, 2)]))
    exactly, higher = (butfor.explain(Sums(), data, 0, goal=Goal(threshold=value)) for value in (3.0, 2.0))
    assert (exactly.before.label, exactly.status) == (0, Status.IMPOSSIBLE)
    # One edge less gives exactly 2, which is at most 2.
    assert (higher.before.label, higher.size, higher.after.value) == (1, 1, 2.0)


def test_a_number_rises_by_additions_and_features() -> None:
    data = Data(x=torch.tensor([[1.0], [1.0], [4.0]]), edge_index=both([(0, 1)]))
    goal = Goal(threshold=5.0)
    assert butfor.explain(Sums(), data, 0, goal=goal).status is Status.IMPOSSIBLE
    added = butfor.explain(Sums(), data, 0, goal=goal, space=EditSpace(add=[(0, 2)]))
    assert (added.added_edges, added.after.value) == (((0, 2),), 6.0)
    changed = butfor.explain(Sums(), data, 0, goal=goal, space=EditSpace(features=Features(between=(0, 8), within=1)))
    assert (changed.size, changed.after.value) == (1, 9.0)
    wanted = butfor.explain(Sums(), data, 0, goal=Goal(wanted=1, threshold=5.0), space=EditSpace(add=[(0, 2)]))
    assert wanted.edits == added.edits


@pytest.mark.parametrize("flat", [False, True])
def test_a_yes_or_no_from_one_logit(flat: bool) -> None:
    data = Data(x=torch.tensor([[-1.0], [2.0]]), edge_index=both([(0, 1)]))
    result = butfor.explain(Sums(flat), data, 0, goal=Goal(threshold=0.0))
    assert (result.before.label, result.after.label, result.removed_edges) == (1, 0, ((0, 1),))
    assert (result.before.value, result.after.value) == (1.0, -1.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [(Goal(threshold=1234567.0), Goal(threshold=1234568.0)), (Goal(least=0.12345678), Goal(least=0.12345679))],
    ids=["threshold", "least"],
)
def test_runs_with_different_goals_are_different_runs(first: Goal, second: Goal) -> None:
    data = Data(x=torch.ones(3, 1), edge_index=both([(0, 1), (0, 2)]))
    model = Sums() if first.threshold is not None else GCN(1, 4, 1, 2).eval()
    one, other = (Run.of(Session.of(model, data, goal=goal), Exact()) for goal in (first, second))
    assert one != other


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (Goal(threshold=float("nan")), "the threshold is nan"),
        (Goal(threshold=float("inf")), "the threshold is inf"),
        (Goal(threshold=0.0, probability=0.6), "no probabilities; use least"),
        (Goal(threshold=0.0, wanted=2), "class 2 is wanted, but the model has classes 0 to 1"),
        (Goal(threshold=0.0, least=-1.0), r"least margin is -1\.0"),
    ],
)
def test_goals_that_do_not_fit_a_number_are_refused(goal: Goal, message: str) -> None:
    with pytest.raises(InputError, match=message):
        butfor.explain(NodeModel().eval(), path(torch.ones(4, 3)), 0, goal=goal)
