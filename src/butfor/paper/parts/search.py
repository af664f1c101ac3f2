"""The hyper-parameter search: the paper's grid, and Optuna over the same settings.

A setting is as good as the number of counterfactuals it finds. Whether one is found within K iterations is known from
a single run of the largest K that ends at the first: it came by then, or it did not. And where the distance term has no
gradient, as in the published code, β changes nothing. So 144 settings take 48 runs, or 24.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from butfor.evaluation.tables import Table
from butfor.methods import CFGNN
from butfor.paper.lab import Ask
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from butfor.paper.lab import Lab
    from butfor.paper.subjects import Subject

__all__ = ["GRID", "Setting", "asks", "section"]

Optimizer = Literal["sgd", "adam", "adadelta"]

EPOCHS = (100, 300, 500)
BETAS = (0.1, 0.5)
RATES = (0.005, 0.01, 0.1, 1.0)
MOMENTA = (0.0, 0.5, 0.7, 0.9)
OPTIMIZERS: tuple[Optimizer, ...] = ("sgd", "adam", "adadelta")

# Whose choices the rest of the method makes.
CHOICES = {"code": "published code", "paper": "as written"}

TRIALS = 50


@dataclass(frozen=True)
class Setting:
    """One setting of the grid."""

    epochs: int
    beta: float
    lr: float
    momentum: float
    optimizer: Optimizer

    def method(self, choices: str) -> CFGNN:
        """The run that tells how many counterfactuals this setting finds."""
        base = CFGNN.published() if choices == "code" else replace(CFGNN(), keep="first")
        beta = self.beta if base.distance_gradient else BETAS[-1]
        return replace(base, epochs=EPOCHS[-1], beta=beta, lr=self.lr, momentum=self.momentum, optimizer=self.optimizer)

    def label(self, choices: str) -> str:
        """Where that run's results are kept."""
        run = self.method(choices)
        beta = f"-beta-{run.beta}" if run.distance_gradient else ""
        momentum = f"-momentum-{run.momentum}" if run.optimizer == "sgd" else ""
        return f"search/{choices}/{run.optimizer}{momentum}-lr-{run.lr}{beta}"

    def __str__(self) -> str:
        momentum = f", m = {self.momentum:g}" if self.optimizer == "sgd" else ""
        return f"{self.optimizer}, K = {self.epochs}, β = {self.beta:g}, α = {self.lr:g}{momentum}"


GRID: tuple[Setting, ...] = tuple(
    Setting(epochs, beta, lr, momentum, optimizer)
    for optimizer in OPTIMIZERS
    for epochs, beta, lr, momentum in product(EPOCHS, BETAS, RATES, MOMENTA if optimizer == "sgd" else (0.0,))
)


def chosen_by_paper(subject: Subject) -> Setting:
    """SGD with K = 500, β = 0.5, α = 0.1, and the dataset's momentum."""
    return Setting(500, 0.5, 0.1, subject.paper.momentum, "sgd")


def asks(lab: Lab) -> list[Ask]:
    """The runs that the grid takes, on one subject of each dataset."""
    return [
        Ask(subject, {label: method}, seconds=0.05 if subject.dataset == "ba-shapes" else 0.01)
        for subject in lab.firsts()
        for choices in _choices(lab)
        for label, method in {setting.label(choices): setting.method(choices) for setting in GRID}.items()
    ]


def _choices(lab: Lab) -> tuple[str, ...]:
    return ("code",) if lab.quick else tuple(CHOICES)


def counts(lab: Lab, subject: Subject, choices: str) -> dict[Setting, int]:
    """How many counterfactuals every setting finds."""
    when: dict[str, list[int]] = {}
    for label in {setting.label(choices) for setting in GRID}:
        when[label] = [result.evaluations for result in lab.results(subject, label) if result.found]
    return {setting: sum(epoch <= setting.epochs for epoch in when[setting.label(choices)]) for setting in GRID}


@dataclass(frozen=True)
class Tried:
    """What Optuna came to."""

    best: int
    setting: Setting
    trials: int


def ask_optuna(found: dict[Setting, int], seed: int = 0) -> Tried:
    """The best of `TRIALS` settings that Optuna tries, and how many it took to get there.

    What a setting finds is looked up in results that are kept, so a search that was interrupted goes on.
    """
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

    shown = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=TRIALS)
    finally:
        optuna.logging.set_verbosity(shown)
    best = study.best_trial
    values = {**best.params, "momentum": best.params.get("momentum", 0.0)}
    return Tried(int(best.value or 0), Setting(**values), best.number + 1)


def section(lab: Lab) -> Section:
    """What comes out, and the whole grid as a file."""
    rows, records, words = [], [], []
    for subject in lab.firsts():
        paper = chosen_by_paper(subject)
        for position, choices in enumerate(_choices(lab)):
            found = counts(lab, subject, choices)
            most = max(found.values())
            best = [setting for setting in GRID if found[setting] == most]
            above = sum(count > found[paper] for count in found.values())
            tried = ask_optuna(found)
            comes_out = paper in best
            rows.append(
                (
                    subject.paper.title if position == 0 else "",
                    CHOICES[choices],
                    str(paper),
                    str(found[paper]),
                    str(best[0]) + (f" and {len(best) - 1} more" if len(best) > 1 else ""),
                    str(most),
                    f"yes, one of {len(best)}" if comes_out else f"no: {above} of {len(GRID)} find more",
                    f"{tried.best} in trial {tried.trials}",
                )
            )
            verdict = f"does not come out: {best[0]} finds {most}"
            if comes_out:
                verdict = f"comes out, with {len(best) - 1} others that find as many" if len(best) > 1 else "comes out"
            words.append(
                f"{subject.paper.title}, {CHOICES[choices]}: the paper's choice ({paper}) finds {found[paper]} of "
                f"{len(lab.nodes(subject))} and {verdict if most else 'so do all others'}."
            )
            records += [
                {
                    "dataset": subject.dataset,
                    "source": subject.source,
                    "choices": choices,
                    **vars(setting),
                    "found": count,
                    "total": len(lab.nodes(subject)),
                    "paper": setting == paper,
                }
                for setting, count in found.items()
            ]
    table = Table(
        "search",
        f"The {len(GRID)} settings of the paper's grid, judged by the counterfactuals they find",
        (
            "dataset",
            "choices",
            "the paper's setting",
            "finds",
            "the best",
            "finds",
            "does the paper's come out?",
            f"Optuna, {TRIALS} trials",
        ),
        tuple(rows),
        tuple(records),
        (
            "Of settings that find equally many the first in the grid's order is named; the CSV file has all of them. "
            "Optuna (TPE, seed 0) tries settings of the same grid. In the published code β has no effect, because the "
            "distance term has no gradient there.",
        ),
        left=3,
    )
    return Section("search", "Hyper-parameter search", lab.said(lab.firsts()), tuple(words), (table,))
