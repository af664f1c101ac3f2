"""CF-GNNExplainer, the paper's Algorithm 1, for many targets at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import torch.nn.functional as F

from butfor.edits.edits import pack
from butfor.errors import InputError
from butfor.methods.base import BatchMethod, Method
from butfor.methods.greedy import Greedy
from butfor.problem.budget import Meter
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from butfor.oracle.relaxation import Relaxation
    from butfor.problem.problem import Problem

__all__ = ["CFGNN"]

# Single precision holds no more, and steps of this size mean nothing anyway.
LARGEST = 1e30

INSTEAD = "The model offers no gradients that agree with the edits, so {} searched in place of CFGNN."

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
        fallback: the method that searches where the model has no gradients to follow.

    References:
        Lucic, ter Hoeve, Tolomei, de Rijke, Silvestri: CF-GNNExplainer: Counterfactual Explanations for
        Graph Neural Networks. AISTATS 2022.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605, butfor.CFGNN(epochs=200))
        >>> print(cf.status, cf.size, cf.lower_bound)
        found 2 1.0
        >>> butfor.CFGNN.published().degrees
        'detached'
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
    fallback: Method = field(default=Greedy())

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if not 0 < self.lr <= LARGEST:
            raise InputError(f"lr is {self.lr}; the learning rate must be positive, and no larger than {LARGEST:g}")
        if not abs(self.start) <= LARGEST:
            raise InputError(f"start is {self.start}; it must lie between -{LARGEST:g} and {LARGEST:g}")
        if not self.beta >= 0:
            raise InputError(f"beta is {self.beta}; it cannot be negative")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum is {self.momentum}; it must lie in [0, 1)")
        if self.momentum and self.optimizer != "sgd":
            raise InputError(f"momentum is for optimizer 'sgd', not {self.optimizer!r}")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"clip is {self.clip}; give a positive norm, or None for no clipping")

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

    def solve_batch(self, problems: Sequence[Problem]) -> Iterator[tuple[int, Proposal]]:
        """Optimise all targets in one vector; each is given back as soon as its answer is final.

        The problems of one batch share a model, an oracle and a goal. Where the model has no faithful relaxation
        there is no gradient to follow, and the fallback searches instead; the note says so.
        """
        relaxation = problems[0].oracle.relax([problem.edits for problem in problems])
        if relaxation is None:
            if len(problems) == 1:
                # Its time begins now: there may have been others before it.
                waited = replace(problems[0], meter=problems[0].meter.restarted())
                note = INSTEAD.format(type(self.fallback).__name__)
                yield 0, replace(self.fallback.solve(waited), note=note)
            else:
                # Perhaps the model cannot tell targets side by side apart.
                for number, problem in enumerate(problems):
                    yield number, self.solve(problem)
            return
        batch = _Batch(self, problems, relaxation)
        # The targets share the time: each has its own on average.
        budget, spent = problems[0].meter.budget, problems[0].meter.evaluations
        shared = None if budget.seconds is None else budget.seconds * len(problems)
        meter = Meter(replace(budget, seconds=shared), spent)
        epoch = 0
        while not bool(batch.left.all()):
            if epoch == self.epochs or meter.spent:
                batch.final[:] = True
            else:
                epoch += 1
                meter.count(1)
                batch.step()
            yield from batch.leave(epoch)

    def _make_optimizer(self, p_hat: Tensor) -> torch.optim.Optimizer:
        if self.optimizer == "adam":
            return torch.optim.Adam([p_hat], lr=self.lr)
        if self.optimizer == "adadelta":
            return torch.optim.Adadelta([p_hat], lr=self.lr)
        return torch.optim.SGD([p_hat], lr=self.lr, momentum=self.momentum, nesterov=self.momentum > 0)


class _Batch:
    """One run of Algorithm 1: P̂ of all targets that are still in, one behind the other in one vector.

    Tensors over edits follow P̂; tensors over members have one entry per target that is still in.
    """

    def __init__(self, method: CFGNN, problems: Sequence[Problem], relaxation: Relaxation) -> None:
        self.method = method
        self.problems = problems
        self.members = list(range(len(problems)))
        self.goal = problems[0].goal
        like = problems[0].logits
        self.costs = torch.cat([torch.from_numpy(problem.edits.costs).to(like) for problem in problems])
        self.p_hat = torch.full_like(self.costs, method.start)
        self.optimizer = method._make_optimizer(self.p_hat)
        self.best = torch.zeros_like(self.p_hat, dtype=torch.bool)
        self.before = torch.tensor([problem.before for problem in problems], device=like.device)
        self.enough = torch.tensor([problem.least_cost for problem in problems]).to(like)
        self.best_cost = torch.full_like(self.enough, torch.inf)
        self.final = torch.zeros_like(self.enough, dtype=torch.bool)
        self.left = torch.zeros_like(self.final)
        self._take(relaxation)

    def _take(self, relaxation: Relaxation) -> None:
        """Go on with this relaxation of the members."""
        self.relaxation = relaxation
        sizes = torch.from_numpy(np.diff(relaxation.pointers)).to(self.p_hat.device)
        self.owner = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)

    def step(self) -> None:
        """One iteration: record the binary answer, follow the soft one's gradient, see who is done."""
        soft = torch.sigmoid(self.p_hat)
        kept = soft >= 0.5
        binary = kept.to(soft.dtype)
        _, met = self.goal.judge(self.relaxation.logits(binary), self.before.cpu().numpy())
        reached = torch.from_numpy(met).to(kept.device)
        self._record(~kept, reached)
        gradient = self._gradient(soft, binary, reached)
        norm = self._per_member(gradient * gradient).sqrt()
        if self.method.clip is not None:
            gradient *= (self.method.clip / (norm + 1e-6)).clamp(max=1.0)[self.owner]
        self.p_hat.grad = gradient
        self.optimizer.step()

        # Whose answer cannot improve: the cheapest single edit or the first answer found, or P̂ at rest.
        self.final = self.best_cost <= (torch.inf if self.method.keep == "first" else self.enough)
        self.final &= self.best_cost.isfinite()
        if self.method.optimizer == "sgd" and self.method.momentum == 0:
            self.final |= norm == 0

    def _gradient(self, soft: Tensor, binary: Tensor, reached: Tensor) -> Tensor:
        """∇ of L = −1[not reached]·NLL + β·distance with respect to P̂."""
        slope = torch.zeros_like(soft)
        if not bool(reached.all()):
            weights = soft.requires_grad_()
            degrees = {"binary": binary, "detached": soft.detach(), "soft": None}[self.method.degrees]
            log_p = F.log_softmax(self.relaxation.logits(weights, degrees), dim=-1)
            if self.goal.label is None:
                prediction = log_p.gather(1, self.before[:, None])[:, 0]
            else:
                prediction = -log_p[:, self.goal.label]
            (slope,) = torch.autograd.grad((prediction * ~reached).sum(), weights)
            soft = soft.detach()
        if self.method.distance_gradient:
            slope = slope - self.method.beta * self.costs
        # A layer without a derivative at an isolated node must not push every edge out.
        return torch.nan_to_num(slope * (1 - soft) * soft, nan=0.0)

    def _record(self, removed: Tensor, reached: Tensor) -> None:
        cost = self._per_member(self.costs * removed)
        better = reached & (cost < self.best_cost)
        if not bool(better.any()):
            return
        if self.method.keep == "first":
            better &= self.best_cost.isinf()
        for row in better.nonzero().flatten().tolist():
            problem = self.problems[self.members[row]]
            if problem.refuted or problem.edits.constrained:
                chosen = removed[self.owner == row].nonzero().flatten().tolist()
                better[row] = bool(problem.admits(pack([chosen]))[0])
        self.best_cost = torch.where(better, cost, self.best_cost)
        self.best = torch.where(better[self.owner], removed, self.best)

    def _per_member(self, values: Tensor) -> Tensor:
        return torch.zeros_like(self.best_cost).index_add_(0, self.owner, values)

    def leave(self, epochs: int) -> list[tuple[int, Proposal]]:
        """The answers that became final; the batch is shrunk once enough have gone."""
        leaving = (self.final & ~self.left).nonzero().flatten().tolist()
        if not leaving:
            return []
        answers = [(self.members[row], self._proposal(row, epochs)) for row in leaving]
        self.left |= self.final
        staying = ~self.left
        if int(staying.sum()) <= REBUILD * len(self.members):
            self._shrink(staying)
        return answers

    def _proposal(self, row: int, epochs: int) -> Proposal:
        removed = self.best[self.owner == row].nonzero().flatten().tolist()
        found = bool(self.best_cost[row].isfinite())
        problem = self.problems[self.members[row]]
        problem.meter.count(epochs)
        return Proposal((tuple(removed),) if found else (), problem.least_cost)

    def _shrink(self, staying: Tensor) -> None:
        members = [number for number, stays in zip(self.members, staying.tolist(), strict=True) if stays]
        relaxation = self.problems[0].oracle.relax([self.problems[i].edits for i in members]) if members else None
        if relaxation is None:
            # Nobody is left, or those who are cannot do without the others.
            return
        edits = staying[self.owner]
        state = self.optimizer.state[self.p_hat]
        self.p_hat = self.p_hat[edits]
        self.optimizer = self.method._make_optimizer(self.p_hat)
        # Momentum and the like have one entry per edit; step counts have none.
        self.optimizer.state[self.p_hat] = {
            name: value[edits] if isinstance(value, torch.Tensor) and value.shape == edits.shape else value
            for name, value in state.items()
        }
        self.costs, self.best = self.costs[edits], self.best[edits]
        self.before, self.enough, self.best_cost = (
            values[staying] for values in (self.before, self.enough, self.best_cost)
        )
        self.final, self.left = self.final[staying], self.left[staying]
        self.members = members
        self._take(relaxation)
