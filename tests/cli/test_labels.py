"""Methods in few words."""

from __future__ import annotations

from butfor.cli.labels import method_label
from butfor.methods import CFGNN, Greedy, KeepEgo, RemoveSubgraph
from butfor.problem.method_record import MethodRecord


def test_methods_in_few_words() -> None:
    for method, label in [
        (Greedy(), "greedy"),
        (KeepEgo(), "keep-ego"),
        (CFGNN(momentum=0.9), "cf-gnn, momentum=0.9"),
        (CFGNN.published(epochs=7), "cf-gnn, published code, epochs=7"),
        (RemoveSubgraph(size=3), "remove-subgraph, size=3"),
    ]:
        assert method_label(method.record()) == label


def test_methods_as_results_were_written_before_they_had_records() -> None:
    cf_gnn = (
        "CFGNN(epochs=7, lr=0.1, beta=0.5, optimizer='sgd', momentum=0.0, distance_gradient=False, "
        "degrees='detached', clip=2.0, keep='first', start=1.0)"
    )
    for text, label in [
        ("Greedy(width=64)", "greedy"),
        ("KeepEgo()", "keep-ego"),
        (cf_gnn, "cf-gnn, published code, epochs=7"),
        ("RemoveSubgraph(explainer=None, size=3, epochs=100, lr=0.01)", "remove-subgraph, size=3"),
    ]:
        assert method_label(MethodRecord.from_text(text)) == label


def test_methods_that_the_command_line_does_not_know_keep_their_own_words() -> None:
    for text in ("Mine(3)", "Mine()", "Mine(depth=3)", "Mine(**x)", "an own method", "Greedy(depth=3)"):
        assert method_label(MethodRecord.from_text(text)) == text
