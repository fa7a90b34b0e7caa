"""The desks of the paper; a desk exists by standing in DESKS."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.basketball import BASKETBALL
from backend.news.sources.newsroom.desks.books import BOOKS
from backend.news.sources.newsroom.desks.business import BUSINESS
from backend.news.sources.newsroom.desks.climate import CLIMATE
from backend.news.sources.newsroom.desks.crime import CRIME
from backend.news.sources.newsroom.desks.cycling import CYCLING
from backend.news.sources.newsroom.desks.education import EDUCATION
from backend.news.sources.newsroom.desks.film import FILM
from backend.news.sources.newsroom.desks.food import FOOD
from backend.news.sources.newsroom.desks.football import FOOTBALL
from backend.news.sources.newsroom.desks.games import GAMES
from backend.news.sources.newsroom.desks.health import HEALTH
from backend.news.sources.newsroom.desks.markets import MARKETS
from backend.news.sources.newsroom.desks.motoring import MOTORING
from backend.news.sources.newsroom.desks.music import MUSIC
from backend.news.sources.newsroom.desks.politics import POLITICS
from backend.news.sources.newsroom.desks.science import SCIENCE
from backend.news.sources.newsroom.desks.technology import TECHNOLOGY
from backend.news.sources.newsroom.desks.travel import TRAVEL
from backend.news.sources.newsroom.desks.world import WORLD

DESKS: tuple[Desk, ...] = (
    POLITICS,
    BUSINESS,
    FOOTBALL,
    MUSIC,
    HEALTH,
    WORLD,
    FILM,
    TECHNOLOGY,
    CYCLING,
    CLIMATE,
    CRIME,
    SCIENCE,
    BOOKS,
    FOOD,
    EDUCATION,
    BASKETBALL,
    MARKETS,
    MOTORING,
    GAMES,
    TRAVEL,
)
