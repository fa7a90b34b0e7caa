"""The world desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.world_disasters import DISASTER
from backend.news.sources.newsroom.desks.world_people import MIGRATION, PROTEST, REFERENDUM, RELIEF
from backend.news.sources.newsroom.desks.world_relations import DIPLOMACY, SUMMIT
from backend.news.sources.newsroom.desks.world_talks import TALKS

WORLD = Desk("world", (DISASTER, TALKS, DIPLOMACY, MIGRATION, SUMMIT, RELIEF, REFERENDUM, PROTEST), share=1.0)
