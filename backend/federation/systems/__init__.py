"""The systems this server can run, by name. A new one is a file beside this, or a value in one, and a line here."""

from __future__ import annotations

from backend.federation.systems.codebook import CODEBOOK, CODEBOOK_EXACT
from backend.federation.systems.efficient_fedrec import (
    EFFICIENT_FEDREC,
    EFFICIENT_FEDREC_NOISY,
    EFFICIENT_FEDREC_ROWS,
    EFFICIENT_FEDREC_ROWS_AS_PRINTED,
    EFFICIENT_FEDREC_ROWS_NOISY,
    NEWS_UNION,
    NEWS_UNION_AS_PRINTED,
    NEWS_UNION_NOISY,
)
from backend.federation.systems.fednewsrec_nrms_naml_lstur import (
    FEDNEWSREC,
    FEDNEWSREC_WHOLE,
    FEDNEWSREC_WHOLE_EXACT,
    LSTUR,
    LSTUR_WHOLE,
    LSTUR_WHOLE_EXACT,
    NAML,
    NAML_WHOLE,
    NAML_WHOLE_EXACT,
    NRMS,
)
from backend.federation.systems.finding import (
    FINDING,
    FINDING_EXACT,
    FINDING_NAML,
    FINDING_NRMS,
    PROTOTYPES,
    PROTOTYPES_NAML,
    PROTOTYPES_NRMS,
)
from backend.federation.systems.multi_view import FL_DSSM, FL_MV_DSSM, FL_MV_DSSM_SUBSET, MULTI_VIEW
from backend.federation.systems.private_counts import (
    PRIVATE_COUNTS,
    PRIVATE_COUNTS_EXACT,
    PRIVATE_COUNTS_LARGE,
    PRIVATE_COUNTS_LOCAL,
)
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.federation.systems.small_ranker import (
    SMALL_RANKER,
    SMALL_RANKER_EXACT,
    SMALL_RANKER_MEDIAN,
    SMALL_RANKER_SECURE,
    SMALL_RANKER_TRIMMED,
)
from backend.federation.systems.system import SystemSpec
from backend.federation.systems.uni_fedrec import BASIS_VOTE, UNI_FEDREC, UNI_FEDREC_AS_PRINTED, UNI_FEDREC_EXACT

SYSTEMS: dict[str, SystemSpec] = {
    each.name: each
    for each in (
        UNI_FEDREC,
        UNI_FEDREC_EXACT,
        UNI_FEDREC_AS_PRINTED,
        BASIS_VOTE,
        CODEBOOK,
        CODEBOOK_EXACT,
        SMALL_RANKER,
        SMALL_RANKER_SECURE,
        SMALL_RANKER_EXACT,
        FEDNEWSREC,
        FEDNEWSREC_WHOLE,
        FEDNEWSREC_WHOLE_EXACT,
        NRMS,
        NAML,
        NAML_WHOLE,
        NAML_WHOLE_EXACT,
        LSTUR,
        LSTUR_WHOLE,
        LSTUR_WHOLE_EXACT,
        PRIVATE_COUNTS,
        PRIVATE_COUNTS_LARGE,
        PRIVATE_COUNTS_EXACT,
        PRIVATE_COUNTS_LOCAL,
        MULTI_VIEW,
        FL_MV_DSSM,
        FL_MV_DSSM_SUBSET,
        FL_DSSM,
        NEWS_UNION,
        NEWS_UNION_NOISY,
        NEWS_UNION_AS_PRINTED,
        EFFICIENT_FEDREC,
        EFFICIENT_FEDREC_NOISY,
        EFFICIENT_FEDREC_ROWS,
        EFFICIENT_FEDREC_ROWS_NOISY,
        EFFICIENT_FEDREC_ROWS_AS_PRINTED,
        FINDING,
        FINDING_EXACT,
        FINDING_NRMS,
        FINDING_NAML,
        PROTOTYPES,
        PROTOTYPES_NRMS,
        PROTOTYPES_NAML,
        RELEASE_GATE,
        SMALL_RANKER_TRIMMED,
        SMALL_RANKER_MEDIAN,
    )
}


def reads_release(system: str) -> bool:
    """Whether a release that is published now takes anything from a round of this system (decision 51)."""
    return system not in SYSTEMS or SYSTEMS[system].changes == "release"
