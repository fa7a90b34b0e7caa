"""The politics desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.politics_bills import BILL
from backend.news.sources.newsroom.desks.politics_contests import LEADERSHIP
from backend.news.sources.newsroom.desks.politics_councils import BUDGET, POLL, TOWN_HALL
from backend.news.sources.newsroom.desks.politics_inquiries import INQUIRY
from backend.news.sources.newsroom.desks.politics_offices import ELECTION, SCANDAL

POLITICS = Desk("politics", (BILL, ELECTION, SCANDAL, BUDGET, TOWN_HALL, POLL, INQUIRY, LEADERSHIP), share=0.9)
