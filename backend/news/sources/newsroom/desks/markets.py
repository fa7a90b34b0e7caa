"""The markets desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.markets_prices import COMMODITIES, CURRENCIES
from backend.news.sources.newsroom.desks.markets_rates import BONDS, DECISIONS
from backend.news.sources.newsroom.desks.markets_shares import ATTACK, FLOTATION, SESSION

MARKETS = Desk("markets", (SESSION, FLOTATION, ATTACK, COMMODITIES, CURRENCIES, DECISIONS, BONDS), share=1.0)
