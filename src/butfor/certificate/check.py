"""Check a certificate, without the search that found it.

What is confirmed: the certificate is about this graph, this model, this edit space and this goal; its tree leaves out
no set of the allowed edits that costs less than it says; every set that was tried is tried again, on the model itself;
every bound is computed again (`bounds.py`, which has the proof). What is taken for granted: that the program is the
model's, though it is compared with the model on some of the sets that were tried; and that nothing outside the
neighbourhood matters, which `butfor.problem.builder` checks for every target.
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
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from butfor.certificate.record import Certificate
    from butfor.problem.problem import Problem

__all__ = ["Checked", "Refused", "check"]

# On how many of the sets that were tried the program is compared with the model.
COMPARED = 24

# How far they may be apart, relative to the largest score.
CLOSE = 1e-4


class Refused(ButforError):
    """What is wrong with a certificate."""


@dataclass(frozen=True)
class Checked:
    """What was confirmed: how many sets were tried on the model, and how many branches bounded."""

    tried: int
    bounded: int


def check(problem: Problem, certificate: Certificate, fingerprints: tuple[str, str, str]) -> Checked:
    """Confirm a proof about a problem, given the fingerprints of its graph, model and edit space.

    Raises:
        Refused: saying what is wrong.
    """
    _same_question(problem, certificate, fingerprints)
    try:
        subject = Subject.of(problem, certificate.limit)
    except Untraceable as untraceable:
        raise Refused(f"the model's scores cannot be bounded: {untraceable}") from None
    tried, bounded = _leaves(subject, certificate)
    for made, free in bounded:
        if not subject.is_bounded(made, free):
            raise Refused(f"a branch is said to be bounded and is not: {_told(problem, made)}")
    _try_again(problem, subject, tried)
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


def _try_again(problem: Problem, subject: Subject, tried: list[tuple[int, ...]]) -> None:
    """Try every tried set again, on the model itself, and compare the program with the model on some."""
    if not tried:
        return
    packed = pack(tried)
    logits = ModelOracle(problem.predictor, problem.oracle.batch_size(problem.edits) > 1).logits(
        [(problem.edits, packed)]
    )[0]
    reached = problem.goal.judge(logits, problem.before)[1]
    reached[reached] = problem.admits(packed[reached])
    if reached.any():
        raise Refused(f"a set that was tried reaches the goal: {_told(problem, tried[int(reached.argmax())])}")
    scores = logits.double().cpu().numpy()
    for number in np.unique(np.linspace(0, len(tried) - 1, COMPARED).astype(int)):
        program, model = subject.exactly(tried[number]), subject.pairs @ scores[number]
        if not np.abs(program - model).max() <= CLOSE * (1 + np.abs(scores[number]).max()):
            raise Refused(f"the program that was bounded is not the model: {_told(problem, tried[number])}")


def _told(problem: Problem, made: tuple[int, ...]) -> str:
    told = [f"{u}–{v}" for u, v in (one.nodes for one in problem.edits.records(made))]
    return f"without {', '.join(told)}" if told else "the intact graph"
