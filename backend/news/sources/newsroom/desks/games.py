"""The games desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.games_scene import ESPORTS, TALES, UPHEAVALS
from backend.news.sources.newsroom.desks.games_works import BOARD, RELEASES, REVIEWS

GAMES = Desk("games", (REVIEWS, ESPORTS, RELEASES, BOARD, UPHEAVALS, TALES), share=0.8)
