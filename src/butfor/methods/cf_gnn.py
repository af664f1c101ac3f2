"""CF-GNNExplainer, the paper's Algorithm 1, for many targets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import torch.nn.functional as F

from butfor.errors import InputError, ModelError
from butfor.methods.base import BatchMethod
from butfor.problem import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from butfor.problem import Budget, Problem

__all__ = ["CFGNN"]

# The oracle's batch is built anew once this share of it has left; before that, leavers ride along.
REBUILD = 0.8


@dataclass(frozen=True)
class CFGNN(BatchMethod):
    """Learn a weight P̂ per edge by gradient descent; the edges whose σ(P̂) falls below ½ are removed.

    ``CFGNN()`` is what the paper describes; `CFGNN.published` is what its published code does. The
    last five options are the points in which the two differ.

    Two departures from the letter of the paper: of several equally small counterfactuals the first
    found is kept, not the last, so that a target whose answer cannot improve may leave the batch; and
    the gradient of the number of removed edges, a sum of thresholded values, is taken straight through
    the threshold, to σ(P̂).

    Attributes:
        epochs: K, the number of iterations.
        lr: the learning rate α.
        beta: β, the weight of the distance term in the loss.
        optimizer: "sgd", "adam" or "adadelta".
        momentum: Nesterov momentum, for "sgd".
        distance_gradient: whether the distance term's gradient reaches P̂ (published code: no).
        degrees: what degrees in the soft forward pass are counted with: "binary" for the thresholded
            edges (paper), "detached" for σ(P̂) without its gradient (published code), "soft" for σ(P̂)
            with its gradient. Models without degree-normalised layers do not notice.
        clip: the largest norm of a target's gradient (published code: 2).
        keep: which counterfactual counts, the "smallest" (paper) or the "first" (published code).
        start: the value P̂ starts at (the published code means 1 − 1e-4 but starts at 1).

    References:
        Lucic, ter Hoeve, Tolomei, de Rijke, Silvestri: CF-GNNExplainer: Counterfactual Explanations for
        Graph Neural Networks. AISTATS 2022.
    """

    epochs: int = 500
    lr: float = 0.1
    beta: float = 0.5
    optimizer: Literal["sgd", "adam", "adadelta"] = "sgd"
    momentum: float = 0.0
    distance_gradient: bool = True
    degrees: Literal["binary", "detached", "soft"] = "binary"
    clip: float | None = None
    keep: Literal["smallest", "first"] = "smallest"
    start: float = 1.0

    def __post_init__(self) -> None:
        choices = {
            "optimizer": ("sgd", "adam", "adadelta"),
            "degrees": ("binary", "detached", "soft"),
            "keep": ("smallest", "first"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(allowed)}")
        if self.epochs < 1:
            raise InputError(f"epochs is {self.epochs}; at least 1 is needed")
        if not self.lr > 0:
            raise InputError(f"lr is {self.lr}; the learning rate must be positive")
        if not self.beta >= 0:
            raise InputError(f"beta is {self.beta}; it cannot be negative")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum is {self.momentum}; it must lie in [0, 1)")
        if self.momentum and self.optimizer != "sgd":
            raise InputError(f"momentum is for optimizer 'sgd', not {self.optimizer!r}")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"clip is {self.clip}; give a positive norm, or None for no clipping")
        if not np.isfinite(self.start):
            raise InputError(f"start is {self.start}; it must be a finite number")

    @classmethod
    def published(
        cls,
        epochs: int = 500,
        lr: float = 0.1,
        beta: float = 0.5,
        momentum: float = 0.0,
        optimizer: Literal["sgd", "adam", "adadelta"] = "sgd",
    ) -> CFGNN:
        """The choices of the published code (the paper used momentum 0.9 on BA-Shapes, 0 on the trees)."""
        return cls(
            epochs=epochs,
            lr=lr,
            beta=beta,
            momentum=momentum,
            optimizer=optimizer,
            distance_gradient=False,
            degrees="detached",
            clip=2.0,
            keep="first",
            start=1.0,
        )

    def solve_batch(self, problems: Sequence[Problem], budget: Budget) -> Iterator[tuple[int, Proposal]]:
        """Optimise all targets in one vector; each is given back as soon as its answer is final.

        The problems of one batch share a model, an oracle and a goal.

        Raises:
            ModelError: the model has no faithful relaxation, so there is no gradient to follow.
        """
        batch = _Batch(self, problems)
        meter = budget.meter()
        for epoch in range(1, self.epochs + 1):
            done = batch.step()
            meter.evaluations += 1
            if epoch == self.epochs or meter.spent:
                break
            for number in done:
                yield number, batch.proposal(number, epoch)
            batch.leave(done)
            if not len(batch.alive):
                return
        for number in batch.alive:
            yield int(number), batch.proposal(int(number), epoch)

    def _make_optimizer(self, p_hat: Tensor) -> torch.optim.Optimizer:
        if self.optimizer == "adam":
            return torch.optim.Adam([p_hat], lr=self.lr)
        if self.optimizer == "adadelta":
            return torch.optim.Adadelta([p_hat], lr=self.lr)
        return torch.optim.SGD([p_hat], lr=self.lr, momentum=self.momentum, nesterov=self.momentum > 0)


class _Batch:
    """The state of one run of Algorithm 1: P̂ of all targets in one vector, and who is still in."""

    def __init__(self, method: CFGNN, problems: Sequence[Problem]) -> None:
        self.method = method
        self.problems = problems
        first = problems[0]
        self.goal, self.oracle = first.goal, first.oracle
        sizes = [len(problem.edits) for problem in problems]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        like = first.logits
        self.p_hat = torch.full((int(self.starts[-1]),), method.start, dtype=like.dtype, device=like.device)
        self.p_hat.requires_grad_()
        self.optimizer = method._make_optimizer(self.p_hat)
        self.costs = torch.cat([torch.from_numpy(problem.edits.costs).to(like) for problem in problems])
        self.before = torch.tensor([problem.before for problem in problems], device=like.device)
        self.best = torch.zeros_like(self.p_hat, dtype=torch.bool)
        self.best_cost = torch.full((len(problems),), torch.inf, dtype=like.dtype, device=like.device)
        self.enough = torch.tensor([problem.least_cost for problem in problems]).to(like)
        self.alive = np.arange(len(problems))
        self._enter(self.alive)

    def _enter(self, members: np.ndarray) -> None:
        """Build the oracle's batch of these problems."""
        relaxation = self.oracle.relax([self.problems[i].edits for i in members])
        if relaxation is None:
            model = type(self.problems[0].predictor.model).__name__
            raise ModelError(
                f"CFGNN needs gradients, and {model} offers none that agree with deletion (it would have to take an "
                "edge_weight whose 0 equals a deleted edge); use Greedy, which works without"
            )
        device = self.p_hat.device
        self.relaxation = relaxation
        self.members = torch.from_numpy(members).to(device)
        spans = [np.arange(self.starts[i], self.starts[i + 1]) for i in members]
        self.index = torch.from_numpy(np.concatenate(spans)).to(device)
        sizes = torch.tensor([len(span) for span in spans], device=device)
        self.owner = torch.repeat_interleave(torch.arange(len(members), device=device), sizes)

    def step(self) -> list[int]:
        """One iteration; gives the problems whose answer is now final."""
        method, members = self.method, self.members
        soft = torch.sigmoid(self.p_hat[self.index])
        kept = soft.detach() >= 0.5
        binary = kept.to(soft.dtype)
        with torch.no_grad():
            reached = self.goal.reached(self.relaxation.logits(binary), self.before[members])
        self._record(kept, reached)

        degrees = {"binary": binary, "detached": soft.detach(), "soft": None}[method.degrees]
        log_p = F.log_softmax(self.relaxation.logits(soft, degrees), dim=-1)
        wanted = self.before[members] if self.goal.wanted is None else torch.full_like(members, self.goal.wanted)
        towards = 1.0 if self.goal.wanted is None else -1.0
        prediction = towards * log_p.gather(1, wanted[:, None]).squeeze(1)
        loss = (prediction * ~reached).sum()
        if method.distance_gradient:
            loss = loss + method.beta * (self.costs[self.index] * (1 - soft)).sum()
        (gradient,) = torch.autograd.grad(loss, self.p_hat)
        mine = gradient[self.index]
        norm = torch.zeros_like(log_p[:, 0]).index_add_(0, self.owner, mine * mine).sqrt()
        if method.clip is not None:
            factor = (method.clip / (norm + 1e-6)).clamp(max=1.0)
            gradient[self.index] = mine * factor[self.owner]
        self.p_hat.grad = gradient
        self.optimizer.step()
        return self._final(reached, norm)

    def _record(self, kept: Tensor, reached: Tensor) -> None:
        removed = ~kept
        cost = torch.zeros_like(self.best_cost[self.members])
        cost.index_add_(0, self.owner, self.costs[self.index] * removed)
        better = reached & (cost < self.best_cost[self.members])
        if self.method.keep == "first":
            better &= self.best_cost[self.members].isinf()
        for row in better.nonzero().flatten().tolist():
            span = self.owner == row if self.problems[int(self.members[row])].refuted else None
            if span is not None and self._refuted(row, removed[span]):
                better[row] = False
        self.best_cost[self.members] = torch.where(better, cost, self.best_cost[self.members])
        changed = better[self.owner]
        self.best[self.index[changed]] = removed[changed]

    def _refuted(self, row: int, removed: Tensor) -> bool:
        return frozenset(removed.nonzero().flatten().tolist()) in self.problems[int(self.members[row])].refuted

    def _final(self, reached: Tensor, norm: Tensor) -> list[int]:
        """Whose answer cannot improve: one edge found, the first found, or P̂ at rest."""
        best = self.best_cost[self.members]
        final = best <= self.enough[self.members]
        if self.method.keep == "first":
            final |= best.isfinite()
        if self.method.optimizer == "sgd" and self.method.momentum == 0:
            final |= norm == 0
        still_in = set(self.alive.tolist())
        return [number for number in self.members[final].tolist() if number in still_in]

    def leave(self, done: list[int]) -> None:
        """Let these problems go, and shrink the oracle's batch when enough have gone."""
        if not done:
            return
        self.alive = np.setdiff1d(self.alive, done)
        if len(self.alive) and len(self.alive) <= REBUILD * len(self.members):
            self._enter(self.alive)

    def proposal(self, number: int, epochs: int) -> Proposal:
        """The best set of this problem so far."""
        problem = self.problems[number]
        removed = self.best[self.starts[number] : self.starts[number + 1]].nonzero().flatten().tolist()
        candidates = (tuple(removed),) if bool(self.best_cost[number].isfinite()) else ()
        return Proposal(candidates, lower_bound=problem.least_cost, evaluations=epochs)
