"""The film desk: reviews, the box office, cinemas, festivals, television, casting and documentaries."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.film_releases import BOX_OFFICE, CINEMAS, REVIEW
from backend.news.sources.newsroom.desks.film_screens import CASTING, DOCUMENTARY, FESTIVAL, TELEVISION

FILM = Desk("film", (REVIEW, FESTIVAL, TELEVISION, CASTING, BOX_OFFICE, DOCUMENTARY, CINEMAS), share=0.9)
