"""The football desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.football_clubs import BENCH, INJURY, QUARREL, SQUAD, TRANSFER
from backend.news.sources.newsroom.desks.football_matches import MATCH

FOOTBALL = Desk("football", (MATCH, TRANSFER, BENCH, INJURY, QUARREL, SQUAD), share=1.1)
