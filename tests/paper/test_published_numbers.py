"""The numbers that the paper published, and which of them stand beside a result."""

from __future__ import annotations

from butfor.methods import CFGNN, Greedy, KeepEgo
from butfor.paper import PAPER, paper_row
from butfor.problem.method_record import MethodRecord


def test_a_result_has_the_row_of_its_method_and_settings() -> None:
    dataset = PAPER["tree-cycles"]
    assert paper_row(dataset, KeepEgo().record()).label == "1HOP"
    assert paper_row(dataset, CFGNN.published(momentum=0.0).record()).label == "CF-GNN"
    assert paper_row(dataset, CFGNN.published(momentum=0.9).record()) is None
    assert paper_row(dataset, Greedy().record()) is None


def test_a_result_of_an_earlier_version_still_has_its_row_in_the_paper() -> None:
    dataset = PAPER["tree-cycles"]
    row = next(row for row in dataset.rows if row.label == "CF-GNN")
    # As it was written before CFGNN had a fallback.
    text = (
        "CFGNN(epochs=500, lr=0.1, beta=0.5, optimizer='sgd', momentum=0.0, distance_gradient=False, "
        "degrees='detached', clip=2.0, keep='first', start=1.0)"
    )
    for said, expected in (
        (text, row),
        (text.replace("epochs=500", "epochs=400"), None),
        (text.replace("CFGNN", "Greedy"), None),
        ("CFGNN()", None),
    ):
        assert paper_row(dataset, MethodRecord.from_text(said)) is expected
