"""Check a certificate, without the search that found it.

What is confirmed: the certificate is about this graph, this model, this edit space and this goal; its tree leaves out
no set of the allowed edits that costs less than it says; every set that was tried is tried again, on the model itself;
every bound is computed again (`bounds.py`, which has the proof). That nothing outside the neighbourhood matters must be
shown by the model's code or its traced run (`butfor.problem.builder`), and some sets are tried on the whole graph too.
What is taken for granted, where something was bounded: that the program which is bounded is the model's, though the two
are compared on the intact graph and on some sets of edits. A proof that only tries sets rests on the model alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from butfor.certificate.record import BOUNDED, TRIED
from butfor.certificate.subject import Subject, listed
from butfor.edits.edits import pack
from butfor.errors import ButforError
from butfor.oracle.general import ModelOracle
from butfor.predict.truth import logits_after

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.certificate.record import Certificate
    from butfor.edits.edit import Edit
    from butfor.edits.edits import EditSet
    from butfor.problem.problem import Problem

__all__ = ["Checked", "Refused", "check"]

# On how many of the sets that were tried the program is compared with the model, and on how many others.
COMPARED, DRAWN = 24, 8

# How many sets are tried at once.
CHUNK = 4096

# How far they may be apart, relative to the largest score.
CLOSE = 1e-4


class Refused(ButforError):
    """A certificate does not hold; the message says what is wrong with it.

    Examples:
        >>> from dataclasses import replace
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> certificate = session.explain(605, butfor.Exact(certificate=True)).certificate
        >>> session.check(replace(certificate, tree=certificate.tree[:-1]))
        Traceback (most recent call last):
            ...
        butfor.certificate.check.Refused: its tree breaks off, so that some sets are not covered
    """


@dataclass(frozen=True)
class Checked:
    """What was confirmed of a certificate.

    Attributes:
        tried: how many sets of edits were tried on the model.
        bounded: how many branches were ruled out by a bound.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> checked = session.check(session.explain(605, butfor.Exact(certificate=True)).certificate)
        >>> checked.tried, checked.bounded
        (4, 1)
    """

    tried: int
    bounded: int


def check(problem: Problem, certificate: Certificate, fingerprints: tuple[str, str, str]) -> Checked:
    """Confirm a proof about a problem, given the fingerprints of its graph, model and edit space.

    Raises:
        Refused: saying what is wrong.
    """
    _same_question(problem, certificate, fingerprints)
    _follows_the_whole_graph(problem, certificate.limit)
    subject = Subject.of(problem, certificate.limit)
    tried, bounded = _leaves(subject, certificate)
    if bounded and subject.bounds is None:
        raise Refused(f"it bounds a branch, but {subject.unbounded}")
    for made, free in bounded:
        if not subject.is_bounded(made, free):
            raise Refused(f"a branch is said to be bounded and is not: {_told(problem, made)}")
    _try_again(problem, tried)
    if bounded:
        _compare(problem, subject, tried)
    return Checked(len(tried), len(bounded))


def _same_question(problem: Problem, certificate: Certificate, fingerprints: tuple[str, str, str]) -> None:
    claimed = certificate.graph_id, certificate.model_id, certificate.space_id
    for what, mine, theirs in zip(("graph", "model", "edit space"), fingerprints, claimed, strict=True):
        if mine != theirs:
            raise Refused(f"it is about another {what} (its fingerprint is {theirs or 'empty'}, not {mine or 'empty'})")
    if str(problem.goal) != certificate.goal:
        raise Refused(f"it is about another goal: {certificate.goal}, not {problem.goal}")
    if problem.target != certificate.target:
        raise Refused(f"it is about another target: {certificate.target}, not {problem.target}")
    allowed = listed(problem)
    if certificate.edits != allowed:
        raise Refused(f"it lists {len(certificate.edits)} edits, which are not the {len(allowed)} that are allowed")


def _follows_the_whole_graph(problem: Problem, limit: float) -> None:
    """What is tried or bounded in the neighbourhood must hold on the whole graph."""
    if not problem.can_prove:
        raise Refused(
            "nothing shows that the model reads no more than the neighbourhood, so nothing can be proved of it"
        )
    for made in problem.telling_sets(limit):
        mine, truth = _scores(problem, pack([made]))[0], logits_after(problem.predictor, problem.edits, made)
        if not problem.predictor.same_logits(mine, truth):
            raise Refused(
                f"the model says something else on the whole graph than on a part of it: {_told(problem, made)}"
            )


def _leaves(
    subject: Subject, certificate: Certificate
) -> tuple[list[tuple[int, ...]], list[tuple[tuple[int, ...], np.ndarray]]]:
    """The leaves of a tree: sets to try, and branches to bound with the edits that are free there.

    Every set belongs to exactly one leaf: at each branch, follow the subtree in which the edit is made if the set
    contains it, else the one in which it is excluded.

    Raises:
        Refused: the tree is not whole, or a leaf leaves out sets.
    """
    nodes = iter(certificate.tree)
    tried: list[tuple[int, ...]] = []
    bounded: list[tuple[tuple[int, ...], np.ndarray]] = []
    free = np.ones(len(subject.costs), dtype=bool)
    stack: list[tuple[tuple[int, ...], np.ndarray]] = [((), free)]
    while stack:
        made, free = stack.pop()
        node = next(nodes, None)
        if node is None:
            raise Refused("its tree breaks off, so that some sets are not covered")
        if node == BOUNDED:
            bounded.append((made, np.flatnonzero(free)))
        elif node == TRIED:
            if subject.most(made, np.flatnonzero(free)):
                raise Refused("a leaf leaves out sets: further edits are affordable there")
            tried += [made] if subject.is_wanted(made) else []
        elif node >= len(free) or not free[node]:
            raise Refused(f"a branch decides edit {node}, which does not exist or was decided before")
        else:
            left = free.copy()
            left[node] = False
            # The subtree in which the edit is made comes first.
            stack += [(made, left), ((*made, node), left)]
    if next(nodes, None) is not None:
        raise Refused("its tree goes on after everything is covered")
    return tried, bounded


def _try_again(problem: Problem, tried: list[tuple[int, ...]]) -> None:
    """Try every tried set again, on the model itself."""
    for start in range(0, len(tried), CHUNK):
        packed = pack(tried[start : start + CHUNK])
        reached = problem.goal.judge(_scores(problem, packed), problem.before)[1]
        reached[reached] = problem.admits(packed[reached])
        if reached.any():
            told = _told(problem, tried[start + int(reached.argmax())])
            raise Refused(f"a set that was tried reaches the goal: {told}")


def _compare(problem: Problem, subject: Subject, tried: list[tuple[int, ...]]) -> None:
    """Compare the program that was bounded with the model: on the intact graph, on tried sets, and on some others."""
    some = (
        [tried[number] for number in np.unique(np.linspace(0, len(tried) - 1, COMPARED).astype(int))] if tried else []
    )
    random = np.random.default_rng(0)
    count = len(problem.edits)
    drawn = [random.permutation(count)[: random.integers(1, count + 1)].tolist() for _ in range(DRAWN)]
    sets = [(), *some, *(tuple(sorted(one)) for one in drawn)]
    scores = _scores(problem, pack(sets)).double().cpu().numpy()
    for made, mine in zip(sets, scores, strict=True):
        apart = np.abs(subject.exactly(made) - subject.pairs @ mine).max()
        # What is not a number is what the checker does not know, or the model.
        if apart > CLOSE * (1 + np.abs(mine).max()):
            raise Refused(f"the program that was bounded is not the model: {_told(problem, made)}")


def _scores(problem: Problem, packed: NDArray[np.int64]) -> Tensor:
    """What the model itself says after these edit sets."""
    general = ModelOracle(problem.predictor, problem.oracle.batch_size(problem.edits) > 1)
    return general.logits([(problem.edits, packed)])[0]


def _told(problem: Problem, made: EditSet) -> str:
    told: dict[type[Edit], list[str]] = {}
    for one in problem.edits.records(made):
        told.setdefault(type(one), []).append(one.told(lambda node, _: str(node), "–"))
    return " and ".join(kind.tell_all(edits) for kind, edits in told.items()) or "the intact graph"
