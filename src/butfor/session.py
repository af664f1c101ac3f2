"""A question made ready once: a model, a graph, a goal and an edit space, to be asked about any number of targets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from butfor.boundary.arguments import check_whole
from butfor.certificate.check import Refused, check
from butfor.edits.rules import Rules
from butfor.edits.space import EditSpace, Within
from butfor.errors import InputError
from butfor.executors import chosen_executor
from butfor.executors.plan import edges_around
from butfor.graph.fingerprint import model_fingerprint
from butfor.graph.graph import Graph
from butfor.live import live_line, shown
from butfor.methods import Exact, Method
from butfor.pipeline import Batching, Pipeline
from butfor.predict.class_names import class_names
from butfor.predict.preserved import MODEL_LOCK
from butfor.predict.scope import predictor_for
from butfor.problem.budget import Budget
from butfor.problem.builder import MAX_EDGES, ProblemBuilder
from butfor.problem.goal import Goal
from butfor.problem.listener import Listener
from butfor.problem.target import as_targets, target_nodes
from butfor.result.assemble import Provenance
from butfor.result.context import PlotContext
from butfor.result.hint import ADDITIONS, instead
from butfor.result.otherwise import is_without_answer, with_otherwise
from butfor.result.result_list import ResultList
from butfor.result.unsearched import failed
from butfor.spread import Search, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn
    from torch_geometric.data import Data, HeteroData

    from butfor.certificate.check import Checked
    from butfor.certificate.record import Certificate
    from butfor.executors import Executor
    from butfor.graph.edge_keys import TargetType
    from butfor.predict.call import Task
    from butfor.predict.predictor import Predictor, Scope
    from butfor.problem.problem import Problem
    from butfor.problem.target import Pair, Target
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Explainer", "Session", "check_settings"]


@dataclass(frozen=True, eq=False)
class Session:
    """A model and a graph made ready once, to explain any number of targets by any number of methods.

    `butfor.prepare` makes one. What it learns about the model and the graph (how the model is called, how far it sees,
    whether it is a model with a fast oracle) is shared by all questions.

    Attributes:
        graph: the graph, read and checked.
        predictor: the model: how it is called, and what it says on the intact graph.
        goal: what counts as another prediction, by class numbers.
        space: what may be edited, as given.
        rules: the same on this graph, checked.
        number: what a whole graph is called in its result; `explain` numbers the graphs of a list.
        batching: how targets are worked on together.
        otherwise: the same with another edit space, which is searched for targets without an answer; None if it is not.
        max_edges: a target whose neighbourhood has more edges is not searched.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> for method in (butfor.Greedy(), butfor.Exact(all_smallest=True)):
        ...     print(repr(session.explain(605, method)))
        <Counterfactual of node 605: optimal, 2 edits, 'motif' → 'base'>
        <Counterfactual of node 605: optimal, 2 edits, 'motif' → 'base'>
        >>> wanted = session.asking(goal=butfor.Goal(probability=0.9))
        >>> print(wanted.explain(605))
        Node 605 is predicted 'motif' (0.93). No allowed edits reach the goal (any other class, with a
            probability of at least 0.9); this is proved.
        >>> {position: result.size for position, result in session.stream([597, 605])}
        {0: 1, 1: 2}
    """

    graph: Graph
    predictor: Predictor
    goal: Goal
    space: EditSpace
    rules: Rules
    number: int = 0
    batching: Batching = field(default=Batching())
    otherwise: Session | None = None
    max_edges: int = MAX_EDGES

    @classmethod
    def of(
        cls,
        model: nn.Module,
        data: Data | HeteroData,
        *,
        task: Task = "node",
        node_type: TargetType | None = None,
        goal: Goal | None = None,
        space: EditSpace | None = None,
        otherwise: EditSpace | None = None,
        directed: bool | None = None,
        probabilities: bool | None = None,
        verify: Scope | None = None,
        max_edges: int = MAX_EDGES,
        number: int = 0,
    ) -> Session:
        """Check everything that can be checked before the first target; see `butfor.prepare`."""
        check_settings(goal=goal, space=space, otherwise=otherwise)
        check_whole(max_edges, "max_edges", 1)
        for name, switch in (("directed", directed), ("probabilities", probabilities)):
            if switch is not None and not isinstance(switch, bool):
                raise InputError(f"{name} is {switch!r}; give True, False or None")
        graph = Graph.of(data, directed)
        goal, space = goal or Goal(), space or EditSpace()
        predictor = predictor_for(
            verify, model, graph, task, node_type=node_type, threshold=goal.threshold, probabilities=probabilities
        )
        # Names are those of the labels, which links and numbers have none of.
        named = task != "link" and goal.threshold is None
        goal = goal.named(class_names(predictor) if named else ())
        goal.check(predictor.num_classes)
        rules = Rules.of(space, graph, predictor.call.edge_fields)
        session = cls(graph, predictor, goal, space, rules, number, max_edges=max_edges)
        if otherwise is None:
            return session
        others = Rules.of(otherwise, graph, predictor.call.edge_fields)
        return replace(session, otherwise=replace(session, space=otherwise, rules=others))

    @overload
    def explain(  # type: ignore[overload-overlap]  # a Pair is also a tuple of two nodes
        self,
        targets: int | Pair | None = ...,
        method: Method | None = ...,
        *,
        budget: Budget | None = ...,
        seed: int = ...,
        progress: bool = ...,
        listener: Listener | None = ...,
        jobs: int = ...,
        executor: Executor | None = ...,
    ) -> Counterfactual: ...

    @overload
    def explain(
        self,
        targets: Iterable[int] | Iterable[Pair] | Tensor,
        method: Method | None = ...,
        *,
        budget: Budget | None = ...,
        seed: int = ...,
        progress: bool = ...,
        listener: Listener | None = ...,
        jobs: int = ...,
        executor: Executor | None = ...,
    ) -> ResultList: ...

    def explain(
        self,
        targets: int | Pair | Iterable[int] | Iterable[Pair] | Tensor | None = None,
        method: Method | None = None,
        *,
        budget: Budget | None = None,
        seed: int = 0,
        progress: bool = False,
        listener: Listener | None = None,
        jobs: int = 1,
        executor: Executor | None = None,
    ) -> Counterfactual | ResultList:
        """What would have to change for the model to predict something else for these targets?

        Args:
            targets: a node, a `Pair` or, in a session about a whole graph, nothing; or several nodes or pairs.
            method: how to search; by default `Exact`.
            budget: what may be spent on each target.
            seed: for methods that draw random numbers.
            progress: show a progress bar on standard error, where that is a terminal; for one target, its best answer
                and lower bound as they move.
            listener: is told how each search gets on, and may end it (`butfor.Listener`); in this process only.
            jobs: in how many processes to search. With more than one, a target that fails does not end the run: its
                result has the status ``failed`` and says why.
            executor: where to search instead, such as ``butfor.Ray()``.

        Returns:
            One result for one target; for several, a list in their order, which shows itself as a table in a notebook.

        Raises:
            InputError: a target is not in the graph or of another kind than the session is about.
            ModelError: the model does not fit the method.
        """
        given = as_targets(targets, lambda: self.predictor.node_range[1] - self.predictor.node_range[0])
        several = given if isinstance(given, list) else [given]
        where = {"listener": listener, "jobs": jobs, "executor": executor}
        results = self.explain_all(several, method, budget, seed, progress, **where)
        return results if isinstance(given, list) else results[0]

    def explain_all(
        self,
        targets: Sequence[Target],
        method: Method | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        progress: bool = False,
        **where: Any,
    ) -> ResultList:
        """The results of a list of targets, in their order."""
        one_by_one = len(targets) == 1 and chosen_executor(where.get("jobs", 1), where.get("executor")) is None
        with live_line(progress is True and one_by_one and where.get("listener") is None) as line:
            where = where if line is None else {**where, "listener": line}
            stream = self.stream(targets, method, budget=budget, seed=seed, **where)
            results = dict(shown(stream, len(targets), progress if line is None else False))
        return ResultList(results[position] for position in range(len(targets)))

    def stream(
        self,
        targets: Iterable[Target],
        method: Method | None = None,
        *,
        budget: Budget | None = None,
        seed: int = 0,
        listener: Listener | None = None,
        jobs: int = 1,
        executor: Executor | None = None,
    ) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its target in ``targets``.

        Args:
            targets: nodes or pairs; in a session about a whole graph, None.
            method: how to search; by default `Exact`.
            budget: what may be spent on each target.
            seed: for methods that draw random numbers.
            listener: is told how each search gets on, and may end it; in this process only.
            jobs: in how many processes to search.
            executor: where to search instead, such as ``butfor.Ray()``.
        """
        check_settings(method=method, budget=budget, listener=listener)
        check_whole(seed, "seed", 0)
        targets = list(targets)
        keys = [self._key(target) for target in targets]
        method = method or Exact()
        chosen = chosen_executor(jobs, executor)
        if chosen is not None:
            if listener is not None:
                raise InputError("a listener hears of searches in this process only; leave out jobs and executor")
            return spread(Search(self, method, budget, seed), targets, chosen)
        provenance = self.provenance(method)
        pipeline = Pipeline(self.builder, method, budget or Budget(), seed, provenance, self.batching, listener)
        found = pipeline.stream(keys)
        if self.otherwise is None:
            return found
        return self._with_otherwise(self.otherwise, targets, found, method, budget, seed)

    def _with_otherwise(
        self,
        other: Session,
        targets: Sequence[Target],
        found: Iterator[tuple[int, Counterfactual]],
        method: Method,
        budget: Budget | None,
        seed: int,
    ) -> Iterator[tuple[int, Counterfactual]]:
        """The results; for targets without an answer the other edit space is searched too, on a budget of its own."""
        for position, result in found:
            if is_without_answer(result):
                ((_, instead),) = other.stream([targets[position]], method, budget=budget, seed=seed)
                yield position, with_otherwise(result, instead, self.space.told, other.space.told)
            else:
                yield position, result

    def costs(self, targets: Sequence[Target]) -> NDArray[np.float64]:
        """About what each target costs, compared with others."""
        predictor = self.predictor
        hops = self.builder.hops
        return edges_around(self.graph, [self._key(one) for one in targets], hops, predictor.flow or "source_to_target")

    def failed(self, target: Target, method: Method, seed: int, why: str) -> Counterfactual:
        """The result of a target whose search broke off."""
        named = self.number if target is None else target
        return failed(named, self.predictor, self.goal, self.provenance(method), seed, why)

    def asking(self, goal: Goal | None = None, space: EditSpace | None = None) -> Session:
        """Another question about the same model and graph, which are not looked at again; what is not given stays.

        Args:
            goal: what counts as another prediction.
            space: which edits are allowed, at what cost.

        Raises:
            InputError: the goal or a rule does not fit the model or the graph.
        """
        check_settings(goal=goal, space=space)
        goal, space = goal or self.goal, space or self.space
        if goal.threshold != self.goal.threshold:
            raise InputError("another threshold makes another classifier: prepare it anew")
        goal = goal.named(self._context.class_names)
        goal.check(self.predictor.num_classes)
        rules = Rules.of(space, self.graph, self.predictor.call.edge_fields)
        return replace(self, goal=goal, space=space, rules=rules)

    def bare(self) -> Session:
        """The same session as it travels to another process: without what can be found out again there.

        `Graph.__reduce__` says what travels of the graph.
        """
        predictor = replace(self.predictor)
        bare = replace(self, predictor=predictor)
        if self.otherwise is not None:
            bare = replace(bare, otherwise=replace(self.otherwise, predictor=predictor))
        vars(bare).update(graph_id=self.graph_id, model_id=self.model_id)  # expensive, and must not differ
        return bare

    def at_home(self, result: Counterfactual) -> Counterfactual:
        """A result that came from another process, with what a picture of it needs."""
        return replace(result, _context=self._context)

    def problem(self, target: Target = None, *, seed: int = 0) -> Problem:
        """The problem of one target, as methods get it.

        Args:
            target: a node, a pair or, in a session about a whole graph, nothing.
            seed: for methods that draw random numbers.
        """
        return self.builder.build(self._key(target), seed)

    def check(self, certificate: Certificate) -> Checked:
        """Confirm a proof about a target of this session: `butfor.certificate.check` says what that means.

        Args:
            certificate: that of a result of ``Exact(certificate=True)``, or one of `read_certificates`.

        Raises:
            Refused: saying what is wrong with it.
        """
        nodes, several = certificate.target, {"node": 1, "link": 2, "graph": 0}[self.predictor.task]
        if len(nodes) != several or any(node >= self.graph.num_nodes for node in nodes):
            raise Refused(f"it is about another graph or task: there is no target {nodes} in this one")
        fingerprints = self.graph_id, self.model_id, self.space_id
        return check(self.builder.build(nodes), certificate, fingerprints)

    def _key(self, target: Target) -> tuple[int, ...]:
        return target_nodes(target, self.graph, self.predictor.task, self.predictor.node_type)

    @cached_property
    def builder(self) -> ProblemBuilder:
        """What builds the problems of targets."""
        return ProblemBuilder(self.predictor, self.goal, self.rules, self.max_edges)

    def provenance(self, method: Method) -> Provenance:
        """What all results of this session and a method have in common."""
        ids = self.space_id, self.graph_id, self.model_id
        return Provenance(method.record(), *ids, self._context, self.number, self._helps)

    @cached_property
    def _helps(self) -> str:
        """How to try additions too; empty where they are tried already, or it is not known what a new edge carries."""
        if self.otherwise is not None or self.space.add or self.space.feature_rules:
            return ""
        more = EditSpace(add=Within(ADDITIONS), relations=self.space.relations, carries=self.space.carries)
        try:
            Rules.of(more, self.graph, self.predictor.call.edge_fields)
        except InputError:
            return ""
        return instead(self.space)

    @property
    def space_id(self) -> str:
        """The fingerprint of what may be edited."""
        return self.rules.fingerprint

    @cached_property
    def graph_id(self) -> str:
        """The graph's fingerprint."""
        return self.graph.fingerprint()

    @cached_property
    def model_id(self) -> str:
        """The model's fingerprint."""
        with MODEL_LOCK:
            return model_fingerprint(self.predictor.model)

    @property
    def classes(self) -> NDArray[np.int64]:
        """The predicted class of each node on the intact graph; -1 where the model predicts none.

        Raises:
            InputError: only receptive fields are read.
        """
        if self._context.classes is None:
            raise InputError("only receptive fields are read, so the classes of all nodes are not known")
        return self._context.classes

    @cached_property
    def _context(self) -> PlotContext:
        return PlotContext.of(self.predictor)


def check_settings(
    *,
    method: object = None,
    goal: object = None,
    space: object = None,
    budget: object = None,
    otherwise: object = None,
    listener: object = None,
) -> None:
    """Refuse settings of another type than they must be, where they are given.

    Raises:
        InputError: naming the first of them.
    """
    if method is not None and not isinstance(method, Method):
        raise InputError(f"method is {method!r}; give a method such as butfor.Exact()")
    typed = ("goal", goal, Goal), ("space", space, EditSpace), ("budget", budget, Budget)
    for name, value, kind in (*typed, ("otherwise", otherwise, EditSpace), ("listener", listener, Listener)):
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} is {value!r}; give a butfor.{kind.__name__}")


class Explainer:
    """The former `Session`, which knew only one method; use `butfor.prepare`.

    Args:
        session: the model and the graph.
        method: how to search; by default `Exact`.
        budget: what may be spent on each target.
        seed: for methods that draw random numbers.

    Examples:
        >>> import warnings
        >>> import butfor
        >>> model, data = butfor.example()
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always")
        ...     explainer = butfor.Explainer.of(model, data)
        >>> print(told[0].message)
        Explainer.of(...) is now butfor.prepare(...)
        >>> explainer.one(597)
        <Counterfactual of node 597: optimal, 1 edit, 'motif' → 'base'>
    """

    def __init__(self, session: Session, method: Method | None, budget: Budget | None, seed: int) -> None:
        self.graph, self.predictor = session.graph, session.predictor
        self.method, self.budget, self.seed = method or Exact(), budget or Budget(), seed
        self._session = session

    @classmethod
    def of(
        cls,
        model: nn.Module,
        data: Data | HeteroData,
        *,
        method: Method | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> Explainer:
        """Prepare a model and a graph for one method."""
        warnings.warn("Explainer.of(...) is now butfor.prepare(...)", DeprecationWarning, stacklevel=2)
        return cls(Session.of(model, data, **settings), method, budget, seed)

    def one(self, target: Target) -> Counterfactual:
        """The result for one target."""
        return next(self.stream([target]))[1]

    def stream(self, targets: Iterable[Target]) -> Iterator[tuple[int, Counterfactual]]:
        """Results as they are found, each with the position of its target in ``targets``."""
        return self._session.stream(targets, self.method, budget=self.budget, seed=self.seed)
