"""The verified result: what was edited, what the model then says, and what is proved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butfor.boundary.printable import printable
from butfor.edits.addition import Addition
from butfor.edits.change import Change
from butfor.edits.deletion import Deletion
from butfor.edits.edit import KINDS
from butfor.edits.telling import shortened
from butfor.errors import InputError
from butfor.problem.goal import Goal
from butfor.result.html import card
from butfor.result.schema import from_dict, to_dict
from butfor.result.status import Status

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from torch import nn
    from torch_geometric.data import Data, HeteroData

    from butfor.certificate.record import Certificate
    from butfor.edits.edit import Edit
    from butfor.graph.csr import Flow
    from butfor.graph.edge_keys import TargetType
    from butfor.graph.node_names import Name
    from butfor.problem.method_record import MethodRecord
    from butfor.result.context import PlotContext
    from butfor.result.status import Prediction

__all__ = ["Counterfactual"]

Pair = tuple[int, int]


@dataclass(frozen=True, repr=False)
class Counterfactual:
    """But for these edges, or with these changes, the model would have said something else.

    Two results are equal if they say the same; how long they took, on which versions, and what is kept for drawing do
    not count.

    Attributes:
        target: what is explained: a node, the two nodes of a link, or the number of a graph among those explained.
        status: what is proved.
        before: the prediction on the intact graph.
        after: the verified prediction after the edits; None where nothing was found.
        edits: what is deleted, added and changed, in this order.
        cost: what the edits cost; their number where no other costs were given.
        lower_bound: proved: no cheaper set of edits reaches the goal. None: it is proved that no set does.
        task: "node", "link" or "graph".
        nodes: nodes in the target's neighbourhood.
        edges: edges in it, each undirected edge counted once.
        directed: whether the graph is.
        goal: what counts as another prediction; ``str(goal)`` says it in words.
        method: the method and its hyper-parameters, as plain data.
        evaluations: what was spent, in units of `Budget.evaluations`.
        seed: of the random numbers.
        space_id: fingerprint of what may be edited; empty where every edge may go at cost 1.
        graph_id: fingerprint of the graph.
        model_id: fingerprint of the model and its weights.
        alternatives: other sets of edits that do it at the same cost, each verified, where the method was
            asked for them.
        necessity: where all smallest sets are known, each edit that is in one of them with the share of
            them that contain it. Share 1: nothing as small does without it.
        node_type: in a graph of several node types, that of the target; of a link those of its two ends.
        note: anything unusual about this result.
        names: where the graph's nodes have ids of their own (``data.node_ids``, in a graph of several node types
            ``data["paper"].node_ids``), those of the target and of the ends of all edges named here: (position, id),
            or (position, id, node type).
        seconds: wall time, shared among the targets of a batch.
        versions: of the libraries that computed it.
        hops: how far the neighbourhood reaches; None where it is the whole graph, or not known.
        flow: the direction that messages take in the model; None where it is not known.
        verified_on: what the edits were verified on; None where nothing was found.
        certificate: the proof, where the method was asked to write it down; it is kept in a file of its own.
        otherwise: where nothing was found, and another edit space was to be searched then: its result for this target.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605)
        >>> print(cf)
        Node 605 is predicted 'motif' (0.93). But for these 2 of its 11 edges it would be 'base' (0.83):
            602–603, 605–606.
        >>> print(cf.verdict)
        A counterfactual was found, and it is proved that no smaller one exists.
        >>> cf.removed_edges
        ((602, 603), (605, 606))
        >>> print(cf.status, cf.lower_bound, cf.before, cf.after)
        optimal 2.0 'motif' (0.93) 'base' (0.83)
        >>> figure = cf.plot(path="node-605.png")
        >>> network = cf.to_networkx()
        >>> [edge for edge in network.edges if network.edges[edge]["removed"]]
        [(602, 603), (605, 606)]
        >>> butfor.Counterfactual.from_dict(cf.to_dict()) == cf
        True
    """

    target: int | Pair
    status: Status
    before: Prediction
    after: Prediction | None
    edits: tuple[Edit, ...]
    cost: float
    lower_bound: float | None
    task: str
    nodes: int
    edges: int
    directed: bool
    goal: Goal
    method: MethodRecord
    evaluations: int
    seed: int
    space_id: str
    graph_id: str
    model_id: str
    alternatives: tuple[tuple[Edit, ...], ...] = ()
    necessity: tuple[tuple[Edit, float], ...] | None = None
    node_type: TargetType | None = None
    note: str = ""
    names: tuple[Name, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    hops: int | None = None
    flow: Flow | None = None
    verified_on: str | None = None
    certificate: Certificate | None = field(default=None, compare=False, repr=False)
    otherwise: Counterfactual | None = None
    _context: PlotContext | None = field(default=None, compare=False, repr=False)

    @property
    def found(self) -> bool:
        """Whether there is a counterfactual."""
        return self.after is not None

    @property
    def verdict(self) -> str:
        """What is proved, in a sentence that follows from the status, the goal and the costs."""
        # Where rules were given, edits may have other costs, and several edges may be one edit.
        better = "cheaper" if self.space_id else "smaller"
        none_better = f"no {better} one exists" if self._any_other else f"no {better} one reaches {self._aim}"
        return {
            Status.OPTIMAL: f"A counterfactual was found, and it is proved that {none_better}.",
            Status.FOUND: f"A counterfactual was found; a {better} one may exist.",
            Status.IMPOSSIBLE: f"It is proved that no allowed edits {self._no_edits('the prediction')}.",
        }.get(self.status, self.status.sentence)

    @property
    def _any_other(self) -> bool:
        """Whether any other prediction would do."""
        return self.goal == Goal()

    @property
    def _aim(self) -> str:
        return f"the goal ({self.goal})"

    def _no_edits(self, prediction: str) -> str:
        """What no edits do where that is proved: it must not sound like more."""
        return f"change {prediction}" if self._any_other else f"reach {self._aim}"

    @property
    def size(self) -> int | None:
        """How many edges go or come and how many features change; None where nothing was found."""
        return len(self.edits) if self.found else None

    @property
    def removed_edges(self) -> tuple[Pair, ...]:
        """The deleted edges as pairs of nodes, in order."""
        return tuple((edit.source, edit.target) for edit in self.edits if isinstance(edit, Deletion))

    @property
    def added_edges(self) -> tuple[Pair, ...]:
        """The added edges as pairs of nodes, in order."""
        return tuple((edit.source, edit.target) for edit in self.edits if isinstance(edit, Addition))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changed features."""
        return tuple(edit for edit in self.edits if isinstance(edit, Change))

    def name(self, node: int, node_type: str | None = None) -> str:
        """What the graph itself calls a node, as far as this result knows; else its position.

        Args:
            node: the position of the node.
            node_type: in a graph of several node types, its type.
        """
        known = {(number, *kind): called for number, called, *kind in self.names}
        return known.get((node,) if node_type is None else (node, node_type), str(node))

    @property
    def target_name(self) -> str:
        """What the target is called: "node 17", "paper 17", "link 3–9", "graph 4"."""
        if isinstance(self.target, tuple):
            source, target = self.target
            if not isinstance(self.node_type, tuple):
                return f"link {self.name(source)}{self._arrow}{self.name(target)}"
            first, last = self.node_type
            return f"link {first} {self.name(source, first)} {self._arrow} {last} {self.name(target, last)}"
        if self.task == "graph" or isinstance(self.node_type, tuple):
            return f"graph {self.target}"
        return f"{self.node_type or 'node'} {self.name(self.target, self.node_type)}"

    @property
    def called(self) -> str:
        """The former name of `target_name`."""
        warnings.warn("called is now target_name", DeprecationWarning, stacklevel=2)
        return self.target_name

    @property
    def _arrow(self) -> str:
        return "→" if self.directed else "–"

    def __getstate__(self) -> dict[str, Any]:
        # The context holds the whole graph; a pickle of one result must not.
        return {**self.__dict__, "_context": None}

    def __repr__(self) -> str:
        known = [f"'{said.name}'" for said in (self.before, self.after) if said is not None and said.label >= 0]
        size = [] if self.size is None else [f"{self.size} edit{'s' * (self.size != 1)}"]
        told = ", ".join([self.status.value, *size, *filter(None, [" → ".join(known)])])
        return f"<Counterfactual of {printable(f'{self.target_name}: {told}')}>"

    def __str__(self) -> str:
        # Names come from files, and this is what is printed.
        return printable(self._told())

    def _told(self) -> str:
        name = self.target_name
        if self.status is Status.FAILED:
            return f"{name[0].upper()}{name[1:]} could not be explained: {self.note}"
        if self.before.label < 0:
            return f"{name[0].upper()}{name[1:]} was not searched. {self.note}"
        head = f"{name[0].upper()}{name[1:]} is predicted {self.before}."
        if self.after is None:
            other = "" if self.otherwise is None or not self.otherwise.found else self.otherwise._told()
            return f"{head} {self._failure()}{other.replace(head, ' If other edits are allowed:', 1)}"
        if all(isinstance(edit, Deletion) for edit in self.edits):
            count = len(self.edits)
            # Edges of a group may lie outside the neighbourhood, whose edges are counted.
            of = f"of its {self.edges} edges" if count <= self.edges else "edges"
            named = ", ".join(shortened([edit.told(self.name, self._arrow) for edit in self.edits]))
            return (
                f"{head} But for {'this 1' if count == 1 else f'these {count}'} {of} it would be {self.after}: {named}."
            )
        told = {kind: [e.told(self.name, self._arrow) for e in self.edits if isinstance(e, kind)] for kind in KINDS}
        ways = [kind.tell_all(edits) for kind, edits in told.items() if edits]
        return f"{head} It would be {self.after} {' and '.join(ways)}."

    def _failure(self) -> str:
        if self.status is Status.IMPOSSIBLE:
            return f"No allowed edits {self._no_edits('that')}; this is proved."
        if self.status is Status.REACHED:
            return "That is what is wanted: nothing has to change."
        bound = f"; a counterfactual, if there is one, costs at least {self.lower_bound:g}" if self.lower_bound else ""
        return f"No counterfactual was found among its {self.edges} edges{bound}."

    def _repr_html_(self) -> str:
        # There is no `_repr_svg_`: Jupyter would show this all the same, and keep the picture twice in the notebook.
        from butfor.plotting.plot import svg

        try:
            picture = svg(self)
        except InputError:  # matplotlib is not installed, or the graph is not known any more
            picture = None
        return card(str(self), self.status.value, self.verdict, self.note, picture)

    def plot(
        self,
        data: Data | HeteroData | None = None,
        model: nn.Module | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        edge_labels: str | None = None,
    ) -> Figure:
        """Draw the target, its neighbourhood and the edits; save the picture if a path is given.

        A whole graph whose data say what its ``atoms`` are is drawn as a molecule, unless features have changed or
        edges have labels. A result that was read from a file or unpickled has lost its graph: pass ``data`` and
        ``model``.

        Args:
            data: the graph that was explained, where the result has lost it.
            model: its model.
            path: where to save the picture; the name ends in .png, .svg or .pdf.
            edge_labels: the name of an edge attribute of the graph, such as "amount": its values are written beside
                the edges that are edited, and beside all edges where they are few.

        Raises:
            InputError: the graph is not known and was not given, or has no such edge attribute.
        """
        from butfor.plotting.plot import plot  # the only way from results to pictures; matplotlib is an extra

        return plot(self, data, model, path=path, edge_labels=edge_labels)

    def to_networkx(self, data: Data | HeteroData | None = None, model: nn.Module | None = None) -> Any:
        """The target's neighbourhood as a networkx graph, with the edits in it.

        It is a ``Graph`` or a ``DiGraph`` of node numbers; of a graph of several types, a ``MultiDiGraph`` whose nodes
        are (type, number within the type), with both directions of an edge that has both. Nodes have ``name``,
        ``target``, ``hops`` to the target, the ``predicted`` class and ``type``, where there is such a thing, and
        those with changed features ``changed``: the values before and after by the number of the feature. Edges
        have ``removed``, ``added`` and, in a graph of several types, ``relation``, which is also their key. Added edges
        are in the graph, and removed ones still are.

        Args:
            data: the graph that was explained, where the result was read from a file or unpickled and has lost it.
            model: its model.

        Raises:
            InputError: networkx is not installed, or the graph is not known and was not given.
        """
        from butfor.result.networkx_graph import to_networkx

        return to_networkx(self, data, model)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with a schema version."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Counterfactual:
        """The inverse of `to_dict`; what earlier versions wrote is read too.

        Args:
            plain: the dictionary, such as a line of a result file.

        Raises:
            StoreError: the dictionary is of an unknown schema, or not a counterfactual.
        """
        return from_dict(cls, plain)
