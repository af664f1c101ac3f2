"""The hyper-parameter search: the paper's grid, and Optuna on the same settings.

A setting is judged by the number of counterfactuals that it finds. Two observations make the grid cheap. A run with the
largest K that stops at the first counterfactual also tells what a smaller K finds: whatever was found within that many
iterations. And β has no effect where the distance term has no gradient, as in the published code. So the 144 settings
take only 48 runs, or 24 for the published code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from butfor.evaluation.tables import Table
from butfor.methods import CFGNN
from butfor.paper.formatting import blank_repeats
from butfor.paper.jobs import Job
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.evaluation.tables import Value
    from butfor.paper.benchmark import Benchmark
    from butfor.paper.experiment import Experiment

__all__ = ["GRID", "OptunaResult", "Setting", "jobs", "paper_setting", "search_with_optuna", "section"]

Optimizer = Literal["sgd", "adam", "adadelta"]

EPOCHS = (100, 300, 500)
BETAS = (0.1, 0.5)
RATES = (0.005, 0.01, 0.1, 1.0)
MOMENTA = (0.0, 0.5, 0.7, 0.9)
OPTIMIZERS: tuple[Optimizer, ...] = ("sgd", "adam", "adadelta")

# The variants of CF-GNN whose settings are searched.
VARIANTS = {"code": "published code", "paper": "as written"}

TRIALS = 50


@dataclass(frozen=True)
class Setting:
    """One setting of the grid."""

    epochs: int
    beta: float
    lr: float
    momentum: float
    optimizer: Optimizer

    def method(self, variant: str) -> CFGNN:
        """The run from which the number of counterfactuals of this setting can be read."""
        base = CFGNN.published() if variant == "code" else replace(CFGNN(), keep="first")
        beta = self.beta if base.distance_gradient else BETAS[-1]
        return replace(base, epochs=EPOCHS[-1], beta=beta, lr=self.lr, momentum=self.momentum, optimizer=self.optimizer)

    def label(self, variant: str) -> str:
        """The label under which the results of that run are saved."""
        run = self.method(variant)
        beta = f"-beta-{run.beta}" if run.distance_gradient else ""
        momentum = f"-momentum-{run.momentum}" if run.optimizer == "sgd" else ""
        return f"search/{variant}/{run.optimizer}{momentum}-lr-{run.lr}{beta}"

    def __str__(self) -> str:
        momentum = f", m = {self.momentum:g}" if self.optimizer == "sgd" else ""
        return f"{self.optimizer}, K = {self.epochs}, β = {self.beta:g}, α = {self.lr:g}{momentum}"


GRID: tuple[Setting, ...] = tuple(
    Setting(epochs, beta, lr, momentum, optimizer)
    for optimizer in OPTIMIZERS
    for epochs, beta, lr, momentum in product(EPOCHS, BETAS, RATES, MOMENTA if optimizer == "sgd" else (0.0,))
)


def paper_setting(benchmark: Benchmark) -> Setting:
    """The setting that the paper chose: SGD with K = 500, β = 0.5, α = 0.1, and the dataset's momentum."""
    return Setting(500, 0.5, 0.1, benchmark.paper.momentum, "sgd")


def jobs(experiment: Experiment) -> list[Job]:
    """The runs that the grid needs, on one benchmark of each dataset."""
    return [
        Job(benchmark, {label: method}, seconds_per_node=benchmark.seconds_per_node)
        for benchmark in experiment.one_per_dataset()
        for variant in _variants(experiment)
        for label, method in {setting.label(variant): setting.method(variant) for setting in GRID}.items()
    ]


def _variants(experiment: Experiment) -> tuple[str, ...]:
    return ("code",) if experiment.quick else tuple(VARIANTS)


@dataclass(frozen=True)
class OptunaResult:
    """The best setting that Optuna tried, what it finds, and the number of the trial, counted from 1."""

    found: int
    setting: Setting
    trial: int


def search_with_optuna(found: dict[Setting, int], seed: int = 0) -> OptunaResult:
    """Let Optuna try `TRIALS` settings. What a setting finds is looked up in ``found`` instead of being run."""
    import optuna

    def objective(trial: optuna.Trial) -> float:
        optimizer: Any = trial.suggest_categorical("optimizer", OPTIMIZERS)
        return found[
            Setting(
                epochs=int(trial.suggest_categorical("epochs", EPOCHS)),
                beta=float(trial.suggest_categorical("beta", BETAS)),
                lr=float(trial.suggest_categorical("lr", RATES)),
                momentum=float(trial.suggest_categorical("momentum", MOMENTA)) if optimizer == "sgd" else 0.0,
                optimizer=optimizer,
            )
        ]

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=TRIALS)
    finally:
        optuna.logging.set_verbosity(verbosity)
    best = study.best_trial
    values = {**best.params, "momentum": best.params.get("momentum", 0.0)}
    return OptunaResult(int(best.value or 0), Setting(**values), best.number + 1)


@dataclass(frozen=True)
class _Search:
    """What the grid finds on one benchmark for one variant of CF-GNN."""

    benchmark: Benchmark
    variant: str
    nodes: int
    found: dict[Setting, int]

    @classmethod
    def of(cls, experiment: Experiment, benchmark: Benchmark, variant: str) -> _Search:
        """Count the counterfactuals of every setting."""
        epochs: dict[str, list[int]] = {}
        for label in {setting.label(variant) for setting in GRID}:
            epochs[label] = [one.evaluations for one in experiment.results(benchmark, label) if one.found]
        found = {setting: sum(epoch <= setting.epochs for epoch in epochs[setting.label(variant)]) for setting in GRID}
        return cls(benchmark, variant, len(experiment.nodes(benchmark)), found)

    @property
    def paper(self) -> Setting:
        """The paper's choice."""
        return paper_setting(self.benchmark)

    @property
    def most(self) -> int:
        """How many counterfactuals the best settings find."""
        return max(self.found.values())

    @property
    def best(self) -> list[Setting]:
        """The settings that find the most."""
        return [setting for setting in GRID if self.found[setting] == self.most]

    def row(self) -> tuple[str, ...]:
        """The cells of the table."""
        others = f" and {len(self.best) - 1} more" if len(self.best) > 1 else ""
        better = sum(count > self.found[self.paper] for count in self.found.values())
        is_best = (
            f"yes, one of {len(self.best)}" if self.paper in self.best else f"no: {better} of {len(GRID)} find more"
        )
        optuna = search_with_optuna(self.found)
        return (
            self.benchmark.title,
            VARIANTS[self.variant],
            str(self.paper),
            str(self.found[self.paper]),
            f"{self.best[0]}{others}",
            str(self.most),
            is_best,
            f"{optuna.found} in trial {optuna.trial}",
        )

    def sentence(self) -> str:
        """Whether the paper's choice is the best of the grid, in words."""
        if not self.most:
            verdict = "so do all others"
        elif self.paper not in self.best:
            verdict = f"does not come out: {self.best[0]} finds {self.most}"
        elif len(self.best) > 1:
            verdict = f"comes out, with {len(self.best) - 1} others that find as many"
        else:
            verdict = "comes out"
        return (
            f"{self.benchmark.title}, {VARIANTS[self.variant]}: the paper's choice ({self.paper}) finds "
            f"{self.found[self.paper]} of {self.nodes} and {verdict}."
        )

    def records(self) -> list[dict[str, Value]]:
        """One record for each setting, for the CSV file."""
        return [
            {
                "dataset": self.benchmark.dataset,
                "source": self.benchmark.source,
                "choices": self.variant,
                **vars(setting),
                "found": count,
                "total": self.nodes,
                "paper": setting == self.paper,
            }
            for setting, count in self.found.items()
        ]


def section(experiment: Experiment) -> Section:
    """A table of the best settings, with the whole grid in its CSV file."""
    searches = [
        _Search.of(experiment, benchmark, variant)
        for benchmark in experiment.one_per_dataset()
        for variant in _variants(experiment)
    ]
    table = Table(
        "search",
        f"The {len(GRID)} settings of the paper's grid, judged by the number of counterfactuals they find",
        (
            "dataset",
            "variant",
            "the paper's setting",
            "finds",
            "the best",
            "finds",
            "does the paper's come out?",
            f"Optuna, {TRIALS} trials",
        ),
        blank_repeats(search.row() for search in searches),
        tuple(record for search in searches for record in search.records()),
        (
            "Of several settings that find equally many, the first in the grid's order is named; the CSV file has all "
            "of them. Optuna (TPE, seed 0) tries settings of the same grid. In the published code β has no effect, "
            "because the distance term has no gradient there.",
        ),
        left=3,
    )
    text = tuple(search.sentence() for search in searches)
    settings = experiment.describe(experiment.one_per_dataset())
    return Section("search", "Hyper-parameter search", settings, text, (table,))
