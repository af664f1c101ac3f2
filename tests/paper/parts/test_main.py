"""The parts of the reproduction together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.paper.experiment import Experiment
from butfor.paper.parts import PARTS

if TYPE_CHECKING:
    from pathlib import Path

    from butfor.paper.benchmark import Benchmark


def test_a_label_stands_for_one_method_only(tmp_path: Path) -> None:
    experiment = Experiment(tmp_path, tmp_path)
    methods: dict[tuple[Benchmark, str], str] = {}
    for part in PARTS.values():
        for job in part.jobs(experiment):
            for label, method in job.methods.items():
                assert methods.setdefault((job.benchmark, label), repr(method)) == repr(method)
