"""The paper's ego baselines: the edges among the target and its neighbours, or all others."""

from __future__ import annotations

import networkx as nx
import pytest

import butfor
from butfor.problem.problem import Problem
from butfor.session import Session
from butfor.testing import links, random_problem
from truth import pairs_of


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[set[tuple[int, int]]]:
    """The sets of edges that problems are asked about."""
    seen: list[set[tuple[int, int]]] = []
    ask = Problem.ask

    def noted(self: Problem, sets):
        seen.extend(set(pairs_of(self.edits.records(chosen))) for chosen in sets)
        return ask(self, sets)

    monkeypatch.setattr(Problem, "ask", noted)
    return seen


@pytest.mark.parametrize("seed", range(3))
def test_ego_graphs_equal_networkx(seed: int, asked: list[set[tuple[int, int]]]) -> None:
    model, data = random_problem(seed, nodes=12, density=0.2)
    session = Session.of(model, data)
    graph = nx.Graph(links(data))
    for node in graph:
        problem = session.problem(node)
        ego = {(min(edge), max(edge)) for edge in nx.ego_graph(graph, node).edges}
        near = set(pairs_of(problem.edits.records(range(len(problem.edits)))))
        for method, removed in ((butfor.RemoveEgo(), ego), (butfor.KeepEgo(), near - ego)):
            asked.clear()
            proposal = method.solve(problem)
            assert asked == ([removed] if removed else [])
            assert proposal.lower_bound == problem.least_cost
            assert [set(pairs_of(problem.edits.records(chosen))) for chosen in proposal.candidates] in ([removed], [])


def test_only_senders_are_neighbours_in_a_directed_graph(asked: list[set[tuple[int, int]]]) -> None:
    model, data = random_problem(1, nodes=10, directed=True, density=0.2)
    session = Session.of(model, data, directed=True)
    for node in range(10):
        close = {node, *(u for u, v in links(data, directed=True) if v == node)}
        asked.clear()
        butfor.RemoveEgo().solve(session.problem(node))
        inside = {(u, v) for u, v in links(data, directed=True) if {u, v} <= close}
        assert asked == ([inside] if inside else [])
