"""The systems this server can run.

To add one, add a module here, or a value in one, and list it below.

- `SYSTEMS`: each a model and a task, combined with a protection and an aggregation (`composition`).
- `PRESETS`: the papers' own configurations, which can't be combined with other protections or aggregations.
- `STEPS`: rounds that another round's conclusion orders, or that another system begins with.
- `COMPOSED`: all rounds that can be opened, by full name.
"""

from collections.abc import Iterable

from backend.federation.errors import RoundImpossible, UnknownSystem
from backend.federation.systems.codebook import CODEBOOK
from backend.federation.systems.composition import System, SystemSpec
from backend.federation.systems.efficient_fedrec import (
    EFFICIENT_FEDREC,
    NEWS_HEAD,
    NEWS_ROWS,
    NEWS_UNION,
    NEWS_UNION_MARKS,
    NEWS_UNION_SECURE,
)
from backend.federation.systems.fednewsrec import FEDNEWSREC, FEDNEWSREC_USER, FEDNEWSREC_WHOLE
from backend.federation.systems.finding import (
    FINDING,
    FINDING_NAML,
    GROUPS,
    PROTOTYPES,
    PROTOTYPES_NAML,
    PROTOTYPES_NRMS,
)
from backend.federation.systems.lstur import LSTUR, LSTUR_WHOLE
from backend.federation.systems.multi_view import FL_DSSM, FL_MV_DSSM, FL_MV_DSSM_SUBSET, MULTI_VIEW
from backend.federation.systems.naml import NAML, NAML_WHOLE
from backend.federation.systems.nrms import NRMS
from backend.federation.systems.private_counts import PRIVATE_COUNTS
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.small_ranker import SMALL_RANKER
from backend.federation.systems.uni_fedrec import BASIS, BASIS_VOTE, UNI_FEDREC_RANKINGS, UNI_FEDRECS

SYSTEMS: dict[str, System] = {
    each.name: each
    for each in (
        SMALL_RANKER,
        FEDNEWSREC_USER,
        FEDNEWSREC_WHOLE,
        NRMS,
        NAML,
        NAML_WHOLE,
        LSTUR,
        LSTUR_WHOLE,
        GROUPS,
        MULTI_VIEW,
        BASIS,
        CODEBOOK,
        NEWS_HEAD,
        NEWS_ROWS,
        PRIVATE_COUNTS,
    )
}


def _by_name(specs: Iterable[SystemSpec]) -> dict[str, SystemSpec]:
    return {each.name: each for each in specs}


PRESETS = _by_name(
    (*UNI_FEDRECS, FEDNEWSREC, EFFICIENT_FEDREC, FINDING, FINDING_NAML, FL_MV_DSSM, FL_MV_DSSM_SUBSET, FL_DSSM)
)
STEPS = _by_name(
    (
        RELEASE_GATE,
        BASIS_VOTE,
        *UNI_FEDREC_RANKINGS,
        NEWS_UNION,
        NEWS_UNION_SECURE,
        NEWS_UNION_MARKS,
        PROTOTYPES,
        PROTOTYPES_NRMS,
        PROTOTYPES_NAML,
    )
)
COMPOSED: dict[str, SystemSpec] = (
    _by_name(spec for system in SYSTEMS.values() for spec in system.all()) | PRESETS | STEPS
)


def full_name(system: str, protection: str | None = None, aggregation: str | None = None) -> str:
    """Return the full name of a round, with default protection and aggregation if not given.

    system: a system, a preset, a step, or a full name. Raises UnknownSystem, or RoundImpossible with the reason if
    there is no such combination.
    """
    if system in SYSTEMS:
        return SYSTEMS[system].compose(protection, aggregation).name
    if system not in COMPOSED:
        name, _, axes = system.partition("/")
        if name in SYSTEMS:  # part of a full name, or unknown: the error says which part is wrong
            wanted, _, how = axes.partition("/")
            return SYSTEMS[name].compose(protection or wanted, aggregation or how or None).name
        known = ", ".join((*SYSTEMS, *PRESETS, *STEPS))
        raise UnknownSystem("This server does not run that system.", field="system", limit=known)
    if protection is not None or aggregation is not None:
        raise RoundImpossible(
            f"{system} has a fixed configuration: its protection and aggregation can't be chosen.",
            field="aggregation" if protection is None else "protection",
            limit=system,
        )
    return system


def reads_release(system: str) -> bool:
    """Return whether publishing a release now would disturb a round of this system.

    See docs/decisions/002.
    """
    return system not in COMPOSED or COMPOSED[system].changes == "release"
