"""The cycling desk: races on road and track, transfers, doping, crashes, velodromes and bicycles."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.cycling_races import HOUR, ONE_DAY, STAGE_RACE, TRACK
from backend.news.sources.newsroom.desks.cycling_teams import CRASH, DOPING, GEAR, TRANSFER, VELODROME

CYCLING = Desk("cycling", (STAGE_RACE, ONE_DAY, TRACK, HOUR, TRANSFER, DOPING, CRASH, VELODROME, GEAR), share=0.8)
