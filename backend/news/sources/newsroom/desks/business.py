"""The business desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.business_companies import HANDOVER, MERGER, RESULTS
from backend.news.sources.newsroom.desks.business_work import PORTRAIT, RECALL, SITE, STRIKE

BUSINESS = Desk("business", (RESULTS, MERGER, STRIKE, SITE, RECALL, HANDOVER, PORTRAIT), share=1.0)
