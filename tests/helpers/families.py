"""Families of edit sets, what the model says of each set, and what a bound or a search says of all of them.

The edited graphs are built by hand (`program_cases`) and the model runs on them in double precision.
"""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import butfor
from butfor.edits.edits import pack
from butfor.oracle.program.bounding.plain.entries import MADE
from butfor.oracle.program.bounding.plain.sieve import NEVER, PlainBounding, PlainSieve
from butfor.oracle.program.bounding.sieve import ProgramSieve
from butfor.oracle.program.oracle import ProgramOracle
from gnn_models import Then
from program_cases import CLASSES, WIDTH, ProgramCase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from butfor.oracle.base import Sieve
    from butfor.oracle.program.bounding.sieve import Bounding

EXACT = 1e-7


def hub_case(model: nn.Module, leaves: int, seed: int = 0, space: butfor.EditSpace | None = None) -> ProgramCase:
    """Node 0 hears of many others, some of which hear of others again: too many edits for a case of each subset."""
    random = np.random.default_rng(seed)
    ends = [(leaf, 0) for leaf in range(1, leaves + 1)] + [(leaves + 1, 1), (leaves + 2, 1), (leaves + 2, 2), (0, 3)]
    x = torch.from_numpy(random.normal(size=(leaves + 3, WIDTH)))
    data = Data(x=x, edge_index=torch.tensor(ends).T.contiguous())
    model = model.double().eval()
    return ProgramCase(lambda: copy.deepcopy(model), data, True, 0, space or butfor.EditSpace())


def sage_stack(
    aggregation: str | list[str], depth: int, seed: int, between: Callable[[], nn.Module] = nn.ReLU
) -> nn.Module:
    """Layers of one aggregation, with ReLU or something else between them."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for layer in range(depth):
        width = CLASSES if layer == depth - 1 else WIDTH
        layers += [pyg.SAGEConv(WIDTH, width, aggr=aggregation), between()]
    return Then(*layers[:-1])


def undirected_case(model: nn.Module, edges: list[tuple[int, int]], seed: int) -> ProgramCase:
    """Both directions of each of these edges, random features, and node 0 as the target."""
    index = torch.tensor(edges).T
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(int(index.max()) + 1, WIDTH)))
    data = Data(x=x, edge_index=torch.cat([index, index.flip(0)], dim=1))
    model = model.double().eval()
    return ProgramCase(lambda: copy.deepcopy(model), data, False, 0)


def bounding_of(case: ProgramCase, wanted: int | None = None) -> tuple[Bounding, NDArray[np.float64], bool] | None:
    """The bounds of a case, the combinations of scores that they are of, and whether the least of these counts."""
    problem = case.problem
    if not len(case.edits) or not isinstance(problem.oracle, ProgramOracle):
        return None
    pairs = butfor.Goal(wanted).pairs(problem.predictor.num_classes, problem.before)
    found = problem.oracle._bounding(case.edits, pairs, wanted is None)
    return None if found is None else (found, pairs, wanted is None)


def plain_of(case: ProgramCase, wanted: int | None = None) -> tuple[PlainBounding, NDArray[np.float64], bool] | None:
    """Likewise, plain bounds; None where these do not know what the program does."""
    problem = case.problem
    if not len(case.edits) or not isinstance(problem.oracle, ProgramOracle):
        return None
    pairs = butfor.Goal(wanted).pairs(problem.predictor.num_classes, problem.before)
    found = problem.oracle._plain(case.edits, pairs, wanted is None)
    return None if found is None else (found, pairs, wanted is None)


def margins(case: ProgramCase, sets: Sequence[tuple[int, ...]], pairs: NDArray[np.float64], every: bool) -> np.ndarray:
    """By how much each set misses the goal; inf where the model breaks down, so that it predicts nothing."""
    scores = case.truth(pack(sets))
    apart = np.where(np.isfinite(scores).all(axis=1)[:, None], scores @ pairs.T, np.inf)
    return apart.min(axis=1) if every else apart.max(axis=1)


def losses_of(
    plain: PlainBounding, made: Sequence[int], free: NDArray[np.int64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Each difference where ``made`` is made, and what each free edit takes off it at most, with ``most`` of them.

    None if that is not known of all differences.
    """
    branches = plain.begin(free, np.zeros(len(free)), 0)
    branches.status[list(made)] = MADE
    plain.ready[:] = False
    plain.run(branches, most, np.inf, 0.0, NEVER, 0)
    if not branches.known[0].all():
        return None
    first = plain.tables.at[plain.tables.out]
    return plain.room.low[0, first : first + plain.differences].copy(), branches.losses[0].copy()


def subsets(free: Iterable[int], sizes: Iterable[int]) -> list[tuple[int, ...]]:
    free = [int(edit) for edit in free]
    return [chosen for size in sizes for chosen in itertools.combinations(free, size)]


def check_bounds(case: ProgramCase, seed: int, most_free: int = 7, wanted: int | None = None) -> int:
    """No set of a family lies below its bound. Returns how many bounds were finite."""
    kinds = [found for found in (bounding_of(case, wanted), plain_of(case, wanted)) if found is not None]
    if not kinds:
        return 0
    (_, pairs, every), random, finite = kinds[0], np.random.default_rng(seed), 0
    for most in (1, 2, 3, most_free):
        order = random.permutation(len(case.edits))
        made, free = order[: most % 3], order[most % 3 : most % 3 + most_free]
        sets = [(*made, *more) for more in subsets(free, range(most + 1))]
        truth = margins(case, sets, pairs, every)
        bounds = [bounding.least_margin(made, free, most) for bounding, _, _ in kinds]
        assert max(bounds) <= truth.min() + EXACT * (1 + np.abs(truth[0])), f"{bounds} of {truth.min()}, at most {most}"
        finite += bool(np.isfinite(bounds[0]))
    return finite


def sifted(
    bounding: Bounding | PlainBounding,
    order: NDArray[np.int64],
    size: int,
    needed: float,
    step: int = 10**6,
    costs: NDArray[np.float64] | None = None,
    limit: float = np.inf,
    tight: Bounding | None = None,
    threads: int = 1,
) -> set[frozenset[int]]:
    """All sets that a search hands over; that with plain bounds asks the ``tight`` ones as early as possible.

    ``threads`` is for that with plain bounds.
    """
    costs = np.ones(len(order)) if costs is None else costs

    def begin() -> Sieve:
        if isinstance(bounding, PlainBounding):
            return PlainSieve(bounding, lambda: tight, order, costs, size, limit, needed, asks_from=0)
        return ProgramSieve(bounding, order, costs, size, limit, needed)

    # One bound may cost more than is left; the first, for which everything is computed, says how much.
    first_spent = begin().next(1).spent
    sieve = begin()
    found: set[frozenset[int]] = set()
    done = False
    while not done:
        part = sieve.next(step, threads)
        assert part.spent < threads * (step + 4 * first_spent)
        for prefix, first, last in zip(part.prefixes, part.pointers, part.pointers[1:], strict=False):
            handed_over = {frozenset([*prefix[prefix >= 0].tolist(), int(one)]) for one in part.candidates[first:last]}
            assert not handed_over & found, "no set is handed over twice"
            found |= handed_over
        done = part.done
    assert max(map(len, found), default=0) <= size
    return found


def missed(truth: dict[frozenset[int], float], found: set[frozenset[int]], needed: float) -> list[frozenset[int]]:
    """Sets that reach what is needed and were not handed over, though each of their edits makes a difference."""
    return [
        one
        for one, margin in truth.items()
        if one
        and one not in found
        and margin < needed - EXACT
        and all(abs(truth[one - {edit}] - margin) > EXACT for edit in one)
    ]
