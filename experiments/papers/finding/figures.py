"""`ownfeed evaluate finding --figures`: figures 5 and 6 of FINDING.

Figure 5 removes parts of lambda(t, i). As in the paper, the remaining parts are tuned again: for each form, the value
with the greatest validation AUC is compared on the test impressions. Figure 6 counts the readers who change their group
at each clustering, in the trainings of the complete form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.papers.finding.methods import APART, BASES, Values
from experiments.papers.finding.study import FindingStudy
from experiments.papers.finding.training import METRICS, FindingSizes, Job, Result
from experiments.records import Cell, Table

BASE, METHOD, WHOLE = "small", "FINDING", "time and layer"
FORMS: Mapping[str, Sequence[Values]] = {
    WHOLE: [{"alpha": alpha, "beta": 0.5} for alpha in (1.003, 1.03)],
    "without layer": [{"alpha": alpha, "beta": 0.0} for alpha in (1.003, 1.03)],
    "without time": [{"alpha": APART, "beta": beta} for beta in (0.5, 2.0)],
    "constant, searched": [{"constant": each} for each in (0.3, 0.6, 0.9)],
    "constant 0, vanilla": [{"constant": 0.0}],
    "constant 1": [{"constant": 1.0}],
}
"""Values tried for each form; the paper's alpha, 1.0003, is meant for 12,000 rounds."""
GROUPS, CLUSTERINGS = 8, 5
"""K as in the paper, and number of clusterings in a training after the first."""
SMOKE = FindingSizes(rounds=1, cohort=5)
SMOKE_FORMS = {form: FORMS[form][:1] for form in (WHOLE, "constant 1")}


@dataclass(frozen=True)
class FindingFigures(FindingStudy):
    """FINDING on the small ranker with every value of every form of lambda."""

    part: ClassVar[str] = "both"
    trainings: int = 2
    forms: Mapping[str, Sequence[Values]] = field(default_factory=lambda: FORMS)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.trainings))

    @property
    def jobs(self) -> Sequence[Job]:
        return [self._job(values, seed) for seed in self.seeds for form in self.forms.values() for values in form]

    def _job(self, values: Values, seed: int) -> Job:
        every = max(1, self.sizes.rounds // CLUSTERINGS)
        return Job.of(BASE, METHOD, seed, {**values, "groups": GROUPS, "every": every})

    def tables(self, runs: Mapping[Job, Result]) -> list[Table]:
        tried = {
            form: [[runs[self._job(values, seed)] for seed in self.seeds] for values in values_of]
            for form, values_of in self.forms.items()
        }
        validation = len(self.trainer.protocol.validation.readers)
        chosen = {form: max(each, key=lambda runs: _aucs(runs)[:validation].mean()) for form, each in tried.items()}
        return [interpolation(chosen, validation, self.sizes), self._moves(chosen[WHOLE])]

    def _moves(self, runs: Sequence[Result]) -> Table:
        every, readers = dict(runs[0].job.values)["every"], self.trainer.protocol.samples.readers
        return moves([run.moves for run in runs], round(every), readers)

    def table(self, base: str, results: Sequence[Result]) -> Table:
        return self.tables({run.job: run for run in results})[0]


def interpolation(chosen: Mapping[str, Sequence[Result]], validation: int, sizes: FindingSizes) -> Table:
    """Return figure 5. chosen: one run for each seed; validation: number of validation impressions, which precede the
    test's.
    """
    whole = _aucs(chosen[WHOLE])[validation:]
    rows: list[tuple[Cell, ...]] = []
    for form, runs in chosen.items():
        aucs, values = _aucs(runs), dict(runs[0].job.values)
        ndcg = np.mean([run.metrics[validation:, METRICS.index("nDCG@10")] for run in runs])
        gains = aucs[validation:] - whole
        error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        least = (2 * error / gains.mean()) ** 2 * len(gains) if gains.mean() else None
        rows.append(
            (
                form,
                ", ".join(f"{name} {values[name]:g}" for name in ("alpha", "beta", "constant") if name in values),
                *(f"{each:.4f}" for each in (aucs[:validation].mean(), aucs[validation:].mean(), ndcg)),
                None if form == WHOLE else f"{gains.mean():+.5f} +- {error:.5f}",
                None if form == WHOLE or least is None else round(least),
            )
        )
    notes = (
        f"FINDING, {BASES[BASE].study_model}; {sizes.rounds} rounds of {sizes.cohort} readers, {GROUPS} groups. "
        f"Means over seeds. Values are chosen on {validation} validation impressions; AUC and nDCG@10 on "
        f"{len(whole)} test impressions. Differences are paired by impression, +- one standard error; needed are as "
        "many impressions as make the difference two standard errors.",
    )
    columns = ("lambda", "values", "validation AUC", "AUC", "nDCG@10", "AUC - time and layer", "impressions needed")
    return Table("Interpolation in time and layer (Figure 5)", columns, rows, notes)


def moves(counted: Sequence[Sequence[int]], every: int, readers: int) -> Table:
    """Return figure 6. counted: for each seed, how many readers each clustering moved to another group."""
    shares = 100 * np.array(counted) / readers
    rows = [
        (every * at, f"{each.mean():.1f}", f"{np.ptp(each):.1f}" if len(each) > 1 else None)
        for at, each in enumerate(shares.T, 1)
    ]
    notes = (f"Of {readers:,} readers who train, where the paper draws 400. Mean and range over seeds.",)
    return Table("Readers who change their group (Figure 6)", ("round", "moved %", "range"), rows, notes)


def _aucs(runs: Sequence[Result]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.mean([run.metrics[:, 0] for run in runs], axis=0)
    return found
