"""The travel desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.travel_journeys import AIRPORT, CRUISE, RAIL
from backend.news.sources.newsroom.desks.travel_places import CITY_BREAK, HOTEL, ISLAND, TOURISM

TRAVEL = Desk("travel", (CITY_BREAK, RAIL, AIRPORT, HOTEL, ISLAND, CRUISE, TOURISM), share=0.8)
