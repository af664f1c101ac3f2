"""A method that fails at some nodes and kills its process at others, and models that cannot travel."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch_geometric.nn import GCN

from butfor import Greedy
from butfor.methods import Method

if TYPE_CHECKING:
    from butfor.problem.problem import Problem
    from butfor.problem.proposal import Proposal


@dataclass(frozen=True)
class Fragile(Method):
    """Greedy search, but for some nodes."""

    raises: tuple[int, ...] = ()
    kills: tuple[int, ...] = ()
    seconds: float = 0.0

    def solve(self, problem: Problem) -> Proposal:
        (node,) = problem.target
        if node in self.raises or -1 in self.raises:
            raise RuntimeError(f"no luck with {node}\nand more")
        if node in self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        return Greedy().solve(problem)


class Homebody(GCN):
    """A model that cannot be sent to another process."""

    def __reduce_ex__(self, protocol: int):
        raise TypeError("no GPU handles in a pickle")
