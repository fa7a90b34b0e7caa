"""The small ranker under local noise with means that liars can't move far (`strategies.robust_mean`)."""

from __future__ import annotations

from dataclasses import replace

from backend.federation.strategies.robust_mean import Median, Trimmed
from backend.federation.systems.small_ranker import SMALL_RANKER

SMALL_RANKER_TRIMMED = replace(SMALL_RANKER, name="small_ranker_trimmed", centre=Trimmed(share=0.1))
SMALL_RANKER_MEDIAN = replace(SMALL_RANKER, name="small_ranker_median", centre=Median())
