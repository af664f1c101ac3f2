"""Graph attacks as explainers: what fools a model with the fewest edits explains it.

What is PyG's: the gradient steps on relaxed edges, the projection onto the budget, when the block is drawn anew, the
early stopping, the final sampling, the flips of the greedy attack, and the losses. What is ours, and why:

- A block is drawn from the edits of the problem, not from all pairs of nodes: nothing else may be changed. It is drawn
  without replacement, because edits are few enough to be numbered; PyG's way fails where a block is nearly everything.
- The model is asked through the problem's relaxation and, for sets of whole edits, by making them. So deletions,
  additions and features, all tasks and all models with a faithful relaxation will do, and no answer rests on weights.
- An attack stops when the goal is reached or the search has spent what it may.
- An attack is told how many edits to make; an explanation wants the fewest. So it is run for more and more of them,
  and what is not needed is undone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F

from butfor.boundary.arguments import check_whole
from butfor.edits.edits import pack
from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.greedy import Greedy, pruned
from butfor.predict.preserved import MODEL_LOCK
from butfor.problem.proposal import Proposal

with warnings.catch_warnings():
    # PyG calls all of `contrib` experimental, once, when it is imported.
    warnings.simplefilter("ignore")
    from torch_geometric.contrib.nn import GRBCDAttack, PRBCDAttack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from butfor.oracle.relaxation import Relaxation
    from butfor.problem.problem import Answers, Problem

__all__ = ["GRBCD", "PRBCD"]

INSTEAD = "The model offers no gradients that agree with the edits, so {} searched in place of the attack."

Loss = Literal["masked", "margin", "prob_margin", "tanh_margin"]
LOSSES = ("masked", "margin", "prob_margin", "tanh_margin")

# The longest step of a weight that is to end up between 0 and 1. In single precision PyG's projection takes its full
# thousand rounds beyond some hundred.
LONGEST = 64.0


@dataclass(frozen=True)
class PRBCD(Method):
    """Projected randomised block coordinate descent: spread a budget over the edits by gradient ascent.

    A weight for each edit of a random block follows the gradient of the loss and is projected so that all weights add
    up to at most the budget; edits of little weight are exchanged for others. The budget is 1, 2, 4, ... until whole
    edits are found that reach the goal. Those are pruned, and the attack is repeated with one edit less than they have
    for as long as it succeeds.

    This departs from PyG's attack as ``src/butfor/methods/attack.py`` says at its head: it chooses among the edits of
    the edit space, and looks for the fewest. PyG's learning rate shrinks with the number of nodes, because the loss is
    a mean over them; here there is one target, and it does not. PyG's default loss is "prob_margin", whose gradient
    vanishes where the model is sure of its prediction; that of the scores' margin does not.

    Attributes:
        block_size: how many edits are looked at together; all of them, unless they are very many.
        epochs: gradient steps for each budget; as in PyG, the block is exchanged in the first four fifths of them.
        lr: the learning rate, for each edit of the budget. So large that the budget is used up within a few steps.
        loss: what is raised: "masked" (cross entropy), "margin", "prob_margin" or "tanh_margin".
        samples: sets of edits drawn in the end, each edit as likely as its weight; the first is the heaviest edits.
        fallback: the method that searches where the model has no gradients to follow.

    References:
        Geisler, Schmidt, Şirin, Zügner, Bojchevski, Günnemann: Robustness of Graph Neural Networks at Scale.
        NeurIPS 2021. Algorithm 1.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.PRBCD(epochs=20))
        >>> print(cf.status, cf.size, cf.lower_bound)
        found 2 1.0
    """

    block_size: int = 10_000
    epochs: int = 50
    lr: float = 0.03
    loss: Loss = "margin"
    samples: int = 20
    fallback: Method = field(default=Greedy())

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.loss, block_size=self.block_size, epochs=self.epochs, samples=self.samples)
        if self.block_size == 1:
            raise InputError("block_size is 1; PyG's attack chooses some of a block, so give at least 2")
        if not self.lr > 0:
            raise InputError(f"lr is {self.lr}; the learning rate must be positive")

    def solve(self, problem: Problem) -> Proposal:
        """Double the budget until the goal is reached, then lower it for as long as it still is."""
        if problem.relaxation is None:
            return _instead(self.fallback, problem)
        search = _Search(problem, problem.relaxation)
        count = len(search.free)
        # PyG wants a block to hold more than the budget; all edits at once need no choice.
        most = min(min(self.block_size, count) - 1, search.most)
        failed, size = 0, min(1, most)
        while size > failed and search.affords(2):
            found = search.run(_Projected(search, self), size)
            if found is None:
                failed = size
                size = min(2 * size, most) if not search.found else size
            else:
                size = len(found) - 1
        if not search.found and count <= min(self.block_size, search.most) and search.affords(1):
            search.ask(search.permitted(search.free.tolist()))
            search.prune()
        return search.proposal()


@dataclass(frozen=True)
class GRBCD(Method):
    """Greedy randomised block coordinate descent: make the edit of steepest gradient, again and again.

    In each step a new random block is drawn from the edits that may follow, and the one whose gradient promises most is
    made, without trying any. The attack ends when the goal is reached; what is not needed is undone.

    This departs from PyG's attack as ``src/butfor/methods/attack.py`` says at its head: it chooses among the edits of
    the edit space, and looks for the fewest. One edit is made in each step, and none is made twice.

    Attributes:
        block_size: how many edits are looked at in each step; all of them, unless they are very many.
        epochs: the largest number of steps, and so of edits.
        loss: what is raised: "masked" (cross entropy), "margin", "prob_margin" or "tanh_margin".
        fallback: the method that searches where the model has no gradients to follow.

    References:
        Geisler, Schmidt, Şirin, Zügner, Bojchevski, Günnemann: Robustness of Graph Neural Networks at Scale.
        NeurIPS 2021. Algorithm 2.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.GRBCD())
        >>> print(cf.status, cf.size, cf.lower_bound)
        found 2 1.0
    """

    block_size: int = 10_000
    epochs: int = 125
    loss: Loss = "masked"
    fallback: Method = field(default=Greedy())

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.loss, block_size=self.block_size, epochs=self.epochs)

    def solve(self, problem: Problem) -> Proposal:
        """Attack once; each step is asked about, so that it ends with the first that reaches the goal."""
        if problem.relaxation is None:
            return _instead(self.fallback, problem)
        search = _Search(problem, problem.relaxation)
        most = min(self.epochs, len(problem.edits), search.most)
        search.run(_Stepwise(search, self), most)
        return search.proposal()


def _instead(fallback: Method, problem: Problem) -> Proposal:
    return replace(fallback.solve(problem), note=INSTEAD.format(type(fallback).__name__))


def _check(loss: str, **counts: int) -> None:
    for name, value in counts.items():
        check_whole(value, name, 1)
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"loss is {loss!r}; choose one of {', '.join(LOSSES)}")


@dataclass
class _Search:
    """What attacks on one problem share: what they may spend, and the sets of edits that reached the goal."""

    problem: Problem
    relaxation: Relaxation
    found: list[tuple[int, ...]] = field(default_factory=list)
    _known: dict[tuple[int, ...], Answers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.generator = self.problem.generator()
        self.free = torch.from_numpy(self.problem.free(()))
        limit = self.problem.edits.max_edits
        self.most = len(self.problem.edits) if limit is None else limit

    def affords(self, evaluations: int) -> bool:
        left = self.problem.meter.left
        return left is None or left >= evaluations

    def run(self, attack: _Attack, size: int) -> tuple[int, ...] | None:
        """Attack with a budget of edits; the pruned set, if one reached the goal."""
        before = len(self.found)
        nodes = torch.empty(len(self.problem.edits) + 1, 0)
        label = self.problem.before if self.problem.goal.wanted is None else self.problem.goal.label
        with MODEL_LOCK, torch.random.fork_rng(devices=[]):
            # PyG draws its last samples from torch's global generator, on the device of its own tensors: the CPU.
            torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=self.generator)))
            attack.attack(nodes, torch.empty(2, 0, dtype=torch.long), torch.tensor([label]), size)
        return self.prune(before)

    def soft(self, made: Tensor) -> Tensor:
        """Scores after edits that are made in part."""
        self.problem.meter.count(1)
        return self.relaxation.logits(1 - made.to(self.problem.logits)).to(made)

    def ask(self, chosen: tuple[int, ...]) -> Answers:
        """What making these edits does. An attack comes back to the same ones, which then cost nothing."""
        if chosen not in self._known:
            self._known[chosen] = self.problem.ask([chosen])
        answers = self._known[chosen]
        if answers.reached[0]:
            self.found.append(chosen)
        return answers

    def permitted(self, chosen: Sequence[int]) -> tuple[int, ...]:
        """These edits, or those of them that may be made together, the first ones first."""
        edits = self.problem.edits
        if not edits.constrained or edits.permits(pack([chosen]))[0]:
            return tuple(sorted(chosen))
        kept: list[int] = []
        for edit in chosen:
            if edits.permits(pack([[*kept, edit]]))[0]:
                kept.append(edit)
        return tuple(sorted(kept))

    def prune(self, before: int = 0) -> tuple[int, ...] | None:
        """Undo what is not needed of the cheapest set that reached the goal since there were ``before`` of them."""
        cheapest = min(self.found[before:], key=self.problem.edits.cost, default=None)
        if cheapest is None:
            return None
        self.found.append(pruned(self.problem, cheapest)[0])
        return self.found[-1]

    def proposal(self) -> Proposal:
        best = sorted(dict.fromkeys(self.found), key=self.problem.edits.cost)
        return Proposal(tuple(best), self.problem.least_cost)


class _Attack(PRBCDAttack):  # type: ignore[misc]
    """PyG's attack on a graph that stands for the edits: edit k is the edge from node k to one node behind them all.

    At first this graph has no edges; an edge of weight w is an edit made by so much.
    """

    loss: Callable[..., Tensor]
    metric: Callable[..., Tensor]

    def __init__(self, search: _Search, method: PRBCD | GRBCD, **options: Any) -> None:
        # The dictionary of the class is shared with every other attack.
        self.coeffs = dict(PRBCDAttack.coeffs)
        block_size = min(method.block_size, len(search.free))
        super().__init__(
            torch.nn.Identity(), block_size, method.epochs, loss=method.loss, is_undirected=False, log=False, **options
        )
        self.search = search
        self.already = len(search.found)
        costs = torch.from_numpy(search.problem.edits.costs)
        self.dearness = (costs / costs.mean()).float()
        # PyG's losses lead away from a label; with the other sign they lead towards it.
        plain, sign = self.loss, 1 if search.problem.goal.wanted is None else -1
        self.loss = lambda *asked: sign * plain(*asked)
        # Early stopping compares, and nothing compares with a model that broke down.
        self.metric = lambda *asked: torch.nan_to_num(self.loss(*asked), nan=torch.finfo(torch.float).min)

    @property
    def over(self) -> bool:
        """Whether the goal is reached, there is nothing to choose from, or no step can be paid for."""
        return len(self.search.found) > self.already or not len(self.current_block) or not self.search.affords(2)

    def _prepare(self, budget: int) -> Iterator[int]:
        for step in super()._prepare(budget):
            if self.over:
                return
            yield step

    def _forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        made = edge_weight.new_zeros(len(x) - 1).index_put((edge_index[0],), edge_weight)
        if made.requires_grad:
            logits = self.search.soft(made)
        else:
            # Whole edits, of which the attack likes some more than others.
            liked = torch.zeros_like(made).index_put((self.current_block,), self.block_edge_weight)
            chosen = torch.nonzero(made > 0.5).flatten()
            chosen = chosen[torch.argsort(liked[chosen], descending=True, stable=True)]
            logits = self.search.ask(self.search.permitted(chosen.tolist())).logits.to(made)
        # "masked" wants logarithms of probabilities; to the other losses they are as good as scores.
        return F.log_softmax(logits, dim=-1)

    def _forward_and_gradient(self, *asked: Any, **more: Any) -> tuple[Tensor, Tensor]:
        loss, gradient = super()._forward_and_gradient(*asked, **more)
        # A layer may have no derivative where a node lost all its edges; a dear edit must promise more.
        return loss, torch.nan_to_num(gradient, 0.0, 0.0, 0.0) / self.dearness[self.current_block]

    def _sample_random_block(self, budget: int = 0) -> None:  # noqa: ARG002
        self._take(self._drawn(self.search.free, self.block_size))

    def _drawn(self, edits: Tensor, count: int) -> Tensor:
        return edits[torch.randperm(len(edits), generator=self.search.generator)[:count]].sort().values

    def _take(self, block: Tensor, weights: Tensor | None = None) -> None:
        """Go on with this block; edits without a weight begin with next to none."""
        self.current_block = block
        self.block_edge_index = torch.stack([block, torch.full_like(block, self.num_nodes - 1)])
        self.block_edge_weight = torch.full(block.shape, self.coeffs["eps"])
        if weights is not None:
            self.block_edge_weight[: len(weights)] = weights


class _Projected(_Attack):
    def __init__(self, search: _Search, method: PRBCD) -> None:
        # PyG divides the learning rate by the number of nodes; this cancels that.
        nodes = len(search.problem.edits) + 1
        super().__init__(
            search,
            method,
            epochs_resampling=method.epochs * 4 // 5,
            lr=method.lr * nodes,
            max_final_samples=method.samples,
        )

    def _update_edge_weights(self, budget: int, weights: Tensor, epoch: int, gradient: Tensor) -> Tensor:
        still = torch.zeros_like(weights, dtype=torch.double)
        step = torch.nan_to_num(super()._update_edge_weights(budget, still, epoch, gradient.double()))
        step *= (LONGEST / step.abs().max()).clamp(max=1.0)
        return weights + step.to(weights)

    def _resample_random_block(self, budget: int) -> None:  # noqa: ARG002
        if len(self.current_block) == len(self.search.free):
            return
        # As in PyG: the better half stays, or less where the projection left less.
        order = torch.argsort(self.block_edge_weight)
        least = int((self.block_edge_weight <= self.coeffs["eps"]).sum())
        order = order[max(least, len(order) // 2) :]
        kept, weights = self.current_block[order], self.block_edge_weight[order]
        others = self.search.free[~torch.isin(self.search.free, kept)]
        self._take(torch.cat([kept, self._drawn(others, self.block_size - len(kept))]), weights)

    def _close(self, *asked: Any, **more: Any) -> tuple[Tensor, Tensor]:
        left = self.search.problem.meter.left
        if len(self.search.found) > self.already or left == 0:
            return self.edge_index, self.edge_index
        if left is not None:
            self.coeffs["max_final_samples"] = min(self.coeffs["max_final_samples"], left)
        closed: tuple[Tensor, Tensor] = super()._close(*asked, **more)
        return closed


class _Stepwise(_Attack, GRBCDAttack):  # type: ignore[misc]
    def _sample_random_block(self, budget: int = 0) -> None:  # noqa: ARG002
        # None is flipped back: that would only go round in circles.
        free = torch.from_numpy(self.search.problem.free(self.flipped_edges[0].tolist()))
        self._take(self._drawn(free, self.block_size))

    @torch.no_grad()
    def _update(self, step: int, gradient: Tensor, x: Tensor, *asked: Any, **more: Any) -> dict[str, Any]:
        scalars: dict[str, Any] = super()._update(step, gradient, x, *asked, **more)
        self._forward(x, self.edge_index, self.edge_weight)
        return scalars
