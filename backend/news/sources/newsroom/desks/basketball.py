"""The basketball desk: league games, national teams, transfers, injuries, coaches, arenas and the young."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.basketball_clubs import ARENA, COACH, INJURY, JUNIORS, TRANSFER
from backend.news.sources.newsroom.desks.basketball_games import GAME, NATIONAL

BASKETBALL = Desk("basketball", (GAME, NATIONAL, TRANSFER, INJURY, COACH, ARENA, JUNIORS), share=0.8)
