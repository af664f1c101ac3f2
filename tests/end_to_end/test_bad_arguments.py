"""Arguments that make no sense: each is refused with one sentence."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer

import butfor
from butfor import Budget, EditSpace, Features, Goal, Pair, Within, explain
from butfor.errors import ButforError
from butfor.integrations.pyg import CounterfactualExplainer
from butfor.testing import random_problem

MODEL, DATA = random_problem(1)


META, SPARSE = torch.ones(3, device="meta"), torch.eye(3).to_sparse()


class Answer(nn.Module):
    """Returns or does what it is told, always or after edits only."""

    def __init__(self, answer, only_edited: bool = False) -> None:
        super().__init__()
        self.inner, self.answer, self.only_edited = MODEL, answer, only_edited

    def forward(self, x: Tensor, edge_index: Tensor) -> object:
        out = self.inner(x, edge_index)
        return out if self.only_edited and edge_index.size(1) == DATA.num_edges else self.answer(out)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def throw(error: BaseException) -> object:
    raise error


def with_field(**fields: object) -> Data:
    data = DATA.clone()
    for name, value in fields.items():
        data[name] = value
    return data


CALLS = {
    "batch of NaN": lambda: explain(MODEL, with_field(batch=torch.full((8,), math.nan)), 0),
    "a short batch": lambda: explain(MODEL, with_field(batch=torch.zeros(3, dtype=torch.long)), 0),
    "batch in two columns": lambda: explain(MODEL, with_field(batch=torch.zeros(8, 2, dtype=torch.long)), 0),
    "a sparse batch": lambda: explain(MODEL, with_field(batch=torch.ones(8).to_sparse()), 0),
    "class names that are none": lambda: explain(MODEL, with_field(class_names=object()), 0),
    "labels that are words": lambda: explain(MODEL, with_field(y=["a"] * 8), 0),
    "a mask that is a list": lambda: explain(MODEL, with_field(test_mask=[True] * 8), 0),
    **{
        f"features' values {value!r}": lambda value=value: Features(values=value)
        for value in (None, 1.5, [None], ["a"], {"a": 1}, [math.inf], META, "flop")
    },
    **{
        f"features' columns {value!r}": lambda value=value: Features(columns=value)
        for value in (1.5, np.int64(1), torch.tensor(1), [1.5], [True], "x")
    },
    **{
        # Text is the name of an attribute, which this graph has not, or not for edges.
        f"costs {value!r}": lambda value=value: explain(MODEL, DATA, 0, space=EditSpace(costs=value))
        for value in ([1.5], ["a"], (0, 1), torch.tensor(1), 3, "x", {(0, 1, 2, 3): 1})
    },
    **{
        f"a space from {value!r}": lambda value=value: EditSpace.from_dict(value)
        for value in (None, 1.5, True, [1], "x")
    },
    **{
        f"{name} of {kind}": lambda name=name, value=value: explain(MODEL, DATA, 0, space=EditSpace(**{name: value}))
        for name in ("protected", "allowed", "relations", "groups", "add", "features")
        for kind, value in {"one number": torch.tensor(1), "meta": META, "sparse": SPARSE, "text": "ab"}.items()
    },
    "a self-loop with a cost": lambda: explain(
        MODEL,
        Data(x=DATA.x, edge_index=torch.cat([DATA.edge_index, torch.tensor([[0], [0]])], 1)),
        0,
        space=EditSpace(costs={(0, 0): 2.0}),
    ),
    **{
        f"goal {goal}": lambda goal=goal: explain(MODEL, DATA, 0, goal=Goal(**goal))
        for goal in (
            {"least": None},
            {"least": Fraction(1, 2)},
            {"least": math.inf},
            {"probability": Fraction(1, 2)},
            {"probability": 1.0},
            {"wanted": 3.0},
            {"wanted": [1]},
            {"threshold": "high"},
        )
    },
    "a cost beyond all numbers": lambda: Within(cost=10**400),
    "another cost beyond all numbers": lambda: Features(cost=10**400),
    "steps beyond all numbers": lambda: Features(between=(0, 1), steps=10**30),
    "a learning rate beyond all numbers": lambda: butfor.PRBCD(lr=10**400),
    "a start beyond float32": lambda: butfor.CFGNN(start=1e308),
    "a rate beyond float32": lambda: butfor.CFGNN(lr=1e308),
    "an optimizer that is an array": lambda: butfor.CFGNN(optimizer=np.array([1, 2])),
    "a loss that is an array": lambda: butfor.PRBCD(loss=np.array([1, 2])),
    "a rate that is a fraction": lambda: butfor.CFGNN(lr=Fraction(1, 2)),
    "an explainer that is none": lambda: butfor.RemoveSubgraph(explainer=1.5),
    "a memory that is none": lambda: butfor.RemoveSubgraph(memory=[]),
    **{
        f"target {value!r}": lambda value=value: explain(MODEL, DATA, value)
        for value in (
            np.array(["a"]),
            np.array([0, None], dtype=object),
            META,
            SPARSE,
            torch.tensor(1.5),
            torch.tensor(True),
            {0: "a", "b": 1},
            [0, Pair(0, 1)],
            -1,
            10**30,
            "0",
        )
    },
    "progress that is a tensor": lambda: explain(MODEL, DATA, 0, progress=torch.ones(2)),
    "graphs that are a tensor": lambda: explain(MODEL, torch.tensor(1)),
    "graphs that are numbers": lambda: explain(MODEL, [1, 2]),
    "directed in words": lambda: explain(MODEL, DATA, 0, directed="yes"),
    "probabilities in words": lambda: explain(MODEL, DATA, 0, probabilities="yes"),
    "a method's class": lambda: explain(MODEL, DATA, 0, butfor.Exact),
    "a parameter for a method": lambda: explain(MODEL, DATA, 0, nn.Parameter(torch.ones(3, 3))),
    "a budget of numbers": lambda: explain(MODEL, DATA, 0, budget=100),
    "no budget": lambda: Budget(0),
    "a budget of words": lambda: Budget(seconds="1"),
    **{
        f"a model that returns {kind}": lambda answer=answer: explain(Answer(answer), DATA, 0)
        for kind, answer in {
            "meta": lambda out: out.to("meta"),
            "sparse": lambda out: out.to_sparse(),
            "text": lambda out: "class 1",
            "None": lambda out: None,
        }.items()
    },
    **{
        f"a model that raises {type(error).__name__}": lambda error=error: explain(
            Answer(lambda _: throw(error)), DATA, 0
        )
        for error in (Unspeakable(), GeneratorExit(), SystemExit(1), MemoryError(), RecursionError("deep\ndeep"))
    },
    **{
        f"a PyG explainer with {name}": lambda name=name, value=value: CounterfactualExplainer(**{name: value})
        for name, value in {"goal": 1.5, "space": "all", "budget": 3, "method": "exact"}.items()
    },
    **{f"PyG's index {index!r}": lambda index=index: pyg(index) for index in ("a", 1.5, META, 99, torch.tensor([]))},
}


def pyg(index: object) -> object:
    explainer = Explainer(
        MODEL,
        algorithm=CounterfactualExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    return explainer.algorithm(MODEL, DATA.x, DATA.edge_index, target=torch.zeros(8), index=index)


@pytest.mark.parametrize("what", CALLS)
def test_every_argument_that_makes_no_sense_is_refused_in_one_sentence(what: str) -> None:
    with pytest.raises(ButforError) as caught:
        CALLS[what]()
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    assert 10 < len(said) <= 1001


@pytest.mark.parametrize(
    "answer",
    [
        lambda out: throw(KeyError("edited")),
        lambda out: throw(MemoryError()),
        lambda out: throw(Unspeakable()),
        lambda out: throw(SystemExit(3)),
        lambda out: out * math.nan,
        lambda out: torch.cat([out, out], 1),
        lambda out: out.to_sparse(),
        lambda out: (out, out),
        lambda out: out[:1],
    ],
)
@pytest.mark.parametrize("method", [butfor.Exact(), pytest.param(butfor.Greedy(), marks=pytest.mark.slow)], ids=str)
def test_a_model_that_fails_on_every_edited_graph_says_nothing_there(answer, method) -> None:
    result = explain(Answer(answer, only_edited=True), DATA, 0, method, budget=Budget(12))
    assert not result.found
    assert "the model failed or gave no numbers" in result.note
