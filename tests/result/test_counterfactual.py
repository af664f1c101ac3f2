"""The result: its sentences, equality, pickles, and what it needs for a picture."""

from __future__ import annotations

import pickle
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import butfor
from butfor.edits.deletion import Deletion
from butfor.errors import InputError
from butfor.problem.goal import Goal
from butfor.result.status import Status
from butfor.testing import random_problem
from sample_results import NOTHING, RESULT


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


def test_names_stand_for_positions() -> None:
    named = replace(RESULT, names=((17, "acct_3"), (20, "acct_7")))
    assert str(named).startswith("Node acct_3 is predicted")
    assert str(named).endswith(": acct_3–acct_7, acct_7–21.")
    assert (named.name(20), named.name(21)) == ("acct_7", "21")


def test_targets_have_names() -> None:
    assert RESULT.target_name == "node 17"
    assert replace(RESULT, node_type="user").target_name == "user 17"
    assert replace(RESULT, task="graph").target_name == "graph 17"
    link = replace(RESULT, task="link", target=(17, 20), names=((20, "acct_7"),))
    assert link.target_name == "link 17–acct_7"
    assert replace(link, directed=True).target_name == "link 17→acct_7"
    with pytest.warns(DeprecationWarning, match="called is now target_name"):
        assert link.called == link.target_name


def test_a_pickle_leaves_the_graph_behind() -> None:
    model, data = random_problem(1)
    result = butfor.explain(model, data, 3)
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert (again.seconds, again.versions) == (result.seconds, result.versions)
    assert result._context is not None
    assert again._context is None
    with pytest.raises(InputError, match="give plot"):
        again.plot()


def test_size_is_of_what_was_found() -> None:
    assert (RESULT.size, RESULT.found, NOTHING.size, NOTHING.found) == (2, True, None, False)


def test_equality_ignores_how_long_it_took() -> None:
    assert replace(RESULT, seconds=9.0, versions={}) == RESULT
    assert replace(RESULT, edits=(Deletion(17, 20),)) != RESULT


def test_a_result_from_a_file_asks_for_its_graph() -> None:
    with pytest.raises(InputError, match="give plot"):
        RESULT.plot()


@pytest.mark.parametrize(
    "goal",
    [Goal(wanted=1), Goal(least=0.5), Goal(wanted=2, probability=0.9), Goal(threshold=0.5)],
    ids=str,
)
def test_no_sentence_claims_more_than_was_proved(goal: Goal) -> None:
    """What was proved is about the goal, and about costs where edits have them."""
    impossible = replace(NOTHING, status=Status.IMPOSSIBLE, lower_bound=None, goal=goal)
    for said in (impossible.verdict, str(impossible)):
        assert f"no allowed edits reach the goal ({goal})" in said.replace("No allowed", "no allowed")
        assert "change" not in said
    optimal = replace(RESULT, goal=goal, lower_bound=RESULT.cost, status=Status.OPTIMAL)
    assert optimal.verdict.endswith(f"no smaller one reaches the goal ({goal}).")
    priced = replace(optimal, space_id="c" * 16)
    assert priced.verdict.endswith(f"no cheaper one reaches the goal ({goal}).")
    assert "smaller" not in priced.verdict + str(priced)
    assert "cheaper" in replace(RESULT, space_id="c" * 16, status=Status.FOUND).verdict


def test_repr_is_one_short_line() -> None:
    assert repr(RESULT) == "<Counterfactual of node 17: found, 2 edits, 'motif' → 'base'>"
    one = replace(RESULT, status=Status.OPTIMAL, edits=(Deletion(17, 20),), names=((17, "a\x1bb"),))
    assert repr(one) == "<Counterfactual of node a\\x1bb: optimal, 1 edit, 'motif' → 'base'>"
    assert repr(NOTHING) == "<Counterfactual of node 17: unknown, 'motif'>"
    failed = replace(NOTHING, status=Status.FAILED, before=butfor.Prediction.unknown())
    assert repr(failed) == "<Counterfactual of node 17: failed>"


# In a notebook.


def test_a_result_shows_itself_with_its_picture() -> None:
    model, data = random_problem(1)
    result = next(result for result in butfor.explain(model, data, range(8)) if result.found)
    page = result._repr_html_()
    root = ElementTree.fromstring(page)
    said = ["".join(paragraph.itertext()) for paragraph in root.iter("p")]
    assert said[:2] == [str(result), f"{result.status.value}: {result.verdict}"]
    (picture,) = root.iter("{http://www.w3.org/2000/svg}svg")
    assert picture.get("aria-label") == str(result)
    assert page == result._repr_html_(), "a notebook that is run again does not change"
    assert not hasattr(result, "_repr_svg_")


def test_two_results_in_one_notebook_share_no_id() -> None:
    model, data = random_problem(1)
    first, second = (result._repr_html_() for result in butfor.explain(model, data, [1, 2]))
    ids = [set(re.findall(r'\bid="([^"]+)"', page)) for page in (first, second)]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_names_from_files_are_escaped_in_a_notebook() -> None:
    model, data = random_problem(1)
    data.node_ids = [f"<script>alert({node})</script>--><b>" for node in range(data.num_nodes)]
    data.class_names = ["<img src=x onerror=alert(1)>", "<b>bold</b>\x1b\n", "]]>"]
    # One that is short enough to be written inside its node, of letters that XML does not know.
    data.node_ids[1] = "-->\x1b"
    for result in butfor.explain(model, data, range(4)):
        tags = {element.tag.split("}")[-1] for element in ElementTree.fromstring(result._repr_html_()).iter()}
        assert not tags & {"script", "img", "b"}


def test_without_its_graph_a_result_shows_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    page = replace(RESULT, note="something unusual")._repr_html_()
    assert "<svg" not in page
    assert "something unusual" in page
    model, data = random_problem(1)
    result = butfor.explain(model, data, 1)
    assert "<svg" in result._repr_html_()
    assert "<svg" not in pickle.loads(pickle.dumps(result))._repr_html_()
    assert "<svg" not in replace(result, edges=10**6)._repr_html_(), "a picture that would take long is not drawn"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<svg" not in result._repr_html_()
