"""What the tables of `benchmarks.proofs` are made of: nodes that are explained by one thread, and what is counted."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

import butfor
from benchmarks.exact import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch_geometric.data import Data

    Results = list[butfor.Counterfactual]

EXACT = butfor.Exact(threads=1)
STATUSES = ("optimal", "found", "impossible", "unknown")
COUNTS = (*STATUSES, "with an answer", "proved")
TIMES = "CPU s a node (share of wall time)"

# Targets before those that are counted: they load the kernels, and the third records the whole graph's program.
WARM = 4


class Clock:
    """CPU seconds since it was made, beside wall time: a limit is wall time, of which others may have used a part."""

    def __init__(self) -> None:
        self.started = time.process_time(), time.perf_counter()

    @property
    def seconds(self) -> float:
        """CPU seconds."""
        return time.process_time() - self.started[0]

    @property
    def share(self) -> str:
        """CPU time as a share of wall time: far below 100 % the machine was busy, and less was proved."""
        return f"{self.seconds / (time.perf_counter() - self.started[1]):.0%}"

    def told(self, count: int) -> str:
        """The CPU seconds of one of so many, and the share."""
        return f"{self.seconds / count:.4f} ({self.share})"


@dataclass(frozen=True, eq=False)
class Asked:
    """A session that is warm, its nodes to ask about, and the model's accuracy on all test nodes."""

    session: butfor.Session
    nodes: list[int]
    accuracy: float

    @classmethod
    def of(cls, model: torch.nn.Module, data: Data, count: int | None) -> Asked:
        """So many test nodes that lie evenly among all, because neighbours in the list may share a hub; or all."""
        session = butfor.prepare(model, data)
        nodes = data.test_mask.nonzero().flatten().tolist()
        session.explain(nodes[-WARM:], EXACT)
        right = session.classes[nodes] == data.y[nodes].numpy()
        chosen = np.linspace(0, len(nodes) - 1, min(count or len(nodes), len(nodes))).astype(int)
        return cls(session, [nodes[place] for place in chosen], float(right.mean()))

    def explained(self, budget: butfor.Budget) -> tuple[Results, str]:
        """The results of all nodes, and the cell of `TIMES`."""
        clock = Clock()
        results = self.session.explain(self.nodes, EXACT, budget=budget, progress=True)
        return results, clock.told(len(results))


def trained(make: Callable[..., torch.nn.Module], data: Data, *sizes: int, epochs: int = 100) -> torch.nn.Module:
    """A model of these sizes, trained briefly from seed 0."""
    torch.manual_seed(0)
    return fit(make(data.num_features, *sizes, int(data.y.max()) + 1), data, epochs)


def head(title: str, *columns: str) -> None:
    """Begin a Markdown table."""
    print(f"\n{title}\n")
    row(*columns)
    print(f"|{'---|' * len(columns)}")


def row(*cells: object) -> None:
    """One line of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def is_proved(result: butfor.Counterfactual) -> bool:
    """Whether it is the smallest, or there is none."""
    return result.status.value in ("optimal", "impossible")


def counts(results: Results) -> list[str]:
    """The cells of `COUNTS`."""
    number = Counter(result.status.value for result in results)
    shares = np.mean([(result.found, is_proved(result)) for result in results], axis=0)
    return [*(str(number[status]) for status in STATUSES), *(f"{share:.1%}" for share in shares)]


def gap(result: butfor.Counterfactual) -> float:
    """How far answer and lower bound are apart, relative to the answer; 1 where nothing was found or ruled out."""
    if result.found:
        return (result.cost - (result.lower_bound or 0)) / result.cost
    return 0.0 if is_proved(result) else 1.0


def middle(numbers: Sequence[float], digits: int) -> str:
    """The median, where there is one."""
    return f"{np.median(numbers):,.{digits}f}" if numbers else "–"
