"""Every public name has an example, the examples do what they show, and no argument is left unexplained."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.datasets.registry import registry
from public_names import docstring, public_names

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = public_names()
# Examples that are shown and not run, and why.
NOT_RUN = {"butfor.datasets.load_mutagenicity": "its files do not come with the package"}
# Examples that take more than a few seconds.
SLOW = {"butfor.Processes", "butfor.testing.check_method"}
AS_PRINTED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # long lines of output are wrapped


def examples(name: str, text: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, name, 0)


def test_the_walk_finds_the_public_names() -> None:
    assert {f"butfor.{name}" for name in ("explain", "Exact", "Counterfactual", "__version__")} <= PUBLIC.keys()
    assert {"butfor.methods.METHODS", "butfor.problem.Proposal", "butfor.evaluation.fidelity"} <= PUBLIC.keys()
    assert "butfor.integrations.pyg.CounterfactualExplainer" in PUBLIC
    assert "butfor.methods.Exact" not in PUBLIC  # it has a shorter name


def test_every_public_name_has_an_example() -> None:
    shown = {name: examples(name, docstring(name, value)).examples for name, value in PUBLIC.items()}
    assert [name for name, lines in shown.items() if not lines] == []
    skipped = {name for name, lines in shown.items() if any(doctest.SKIP in line.options for line in lines)}
    assert skipped == set(NOT_RUN)


@pytest.mark.parametrize(
    "name", ["butfor", *(pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PUBLIC)]
)
def test_an_example_does_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_datasets", dict(registry.datasets))  # an example adds to them
    monkeypatch.setattr(registry, "_loaders", list(registry.loaders))
    text = butfor.__doc__ if name == "butfor" else docstring(name, PUBLIC[name])
    assert text is not None
    told: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=AS_PRINTED).run(examples(name, text), out=told.append)
    assert outcome.attempted
    assert not outcome.failed, "".join(told)


def arguments(value: object) -> list[str]:
    """What a caller may pass."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
    if inspect.isclass(value) and "__init__" not in vars(value):
        return list(getattr(value, "_fields", []))
    if inspect.isclass(value) or inspect.isfunction(value):
        return list(inspect.signature(value).parameters)
    return []


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_explained(name: str) -> None:
    explained = re.findall(r"^ {4}(\w+): ", docstring(name, PUBLIC[name]), flags=re.MULTILINE)
    assert [argument for argument in arguments(PUBLIC[name]) if argument not in explained] == []
