"""The crime and courts desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.crime_courts import APPEAL, INQUEST, POLICING, PRISON, SMALL_CASE
from backend.news.sources.newsroom.desks.crime_police import FRAUD, INVESTIGATION
from backend.news.sources.newsroom.desks.crime_trials import TRIAL

CRIME = Desk("crime", (TRIAL, INVESTIGATION, FRAUD, INQUEST, APPEAL, SMALL_CASE, PRISON, POLICING), share=0.95)
