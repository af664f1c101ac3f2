"""A method as plain data, and as it was written before there were records."""

from __future__ import annotations

import pytest
from torch_geometric.explain import CaptumExplainer

import butfor
from butfor.problem.method_record import MethodRecord
from method_list import ALL, VARIANTS


@pytest.mark.parametrize("method", [*ALL.values(), *VARIANTS], ids=repr)
def test_records_say_what_methods_are(method: butfor.methods.Method) -> None:
    record = method.record()
    assert record.name == type(method).__name__
    assert record.settings.keys() == method.settings().keys()
    assert str(record) == repr(method)
    flat = {name: value for name, value in record.settings.items() if not isinstance(value, MethodRecord)}
    assert flat.items() <= MethodRecord.from_text(str(record)).settings.items()


def test_a_method_among_the_settings_is_a_record_again() -> None:
    record = butfor.PRBCD(fallback=butfor.Exact(k=2)).record()
    fallback = record.settings["fallback"]
    assert fallback == butfor.Exact(k=2).record()
    assert record.plain["settings"]["fallback"]["settings"]["k"] == 2


def test_records_of_different_methods_differ() -> None:
    records = [butfor.Greedy().record(), butfor.Greedy(width=2).record(), butfor.KeepEgo().record()]
    assert len(set(records)) == 3
    assert butfor.Greedy().record() == MethodRecord("Greedy", {"width": 64})
    assert hash(butfor.Greedy().record()) == hash(MethodRecord("Greedy", {"width": 64}))


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("KeepEgo()", MethodRecord("KeepEgo")),
        ("Greedy(width=None)", MethodRecord("Greedy", {"width": None})),
        ("A(x=-1.5, y='b', z=(1, 2), t=True)", MethodRecord("A", {"x": -1.5, "y": "b", "z": (1, 2), "t": True})),
        ("A(x=B(y=1, z='c'), t=2)", MethodRecord("A", {"x": "B(y=1, z='c')", "t": 2})),
        # Whatever a method of another package was called.
        ("my method, the second", MethodRecord("my method, the second")),
        ("A(1)", MethodRecord("A(1)")),
        ("A(**b)", MethodRecord("A(**b)")),
        ("A(x=", MethodRecord("A(x=")),
        ("A", MethodRecord("A")),
        ("(" * 5000, MethodRecord("(" * 5000)),
        ("", MethodRecord("")),
    ],
)
def test_methods_from_text(text: str, record: MethodRecord) -> None:
    assert MethodRecord.from_text(text) == record


def test_an_explainer_is_told_as_it_always_was() -> None:
    method = butfor.RemoveSubgraph(CaptumExplainer("IntegratedGradients", n_steps=9), size=1)
    assert MethodRecord.from_text(repr(method)) == method.record()
