"""The books desk: reviews, prizes, publishers, authors, libraries, bookshops, poetry, translations and bestsellers."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.books_reviews import CHART, POETRY, REVIEW, TRANSLATION
from backend.news.sources.newsroom.desks.books_trade import BOOKSHOP, DEAL, LIBRARY, PRIZE, ROW

BOOKS = Desk("books", (REVIEW, PRIZE, DEAL, ROW, LIBRARY, BOOKSHOP, POETRY, TRANSLATION, CHART), share=0.8)
