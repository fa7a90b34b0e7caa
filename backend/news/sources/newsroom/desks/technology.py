"""The technology desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.technology_ai import MODELS
from backend.news.sources.newsroom.desks.technology_industry import CHIPS, VENTURE
from backend.news.sources.newsroom.desks.technology_products import CHANGE, GADGETS, OUTAGE
from backend.news.sources.newsroom.desks.technology_security import BREACH, PRIVACY

TECHNOLOGY = Desk("technology", (BREACH, PRIVACY, MODELS, CHIPS, VENTURE, GADGETS, OUTAGE, CHANGE), share=1.0)
