"""The science desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.science_ground import ARCHAEOLOGY
from backend.news.sources.newsroom.desks.science_medicine import RETRACTIONS, TRIALS
from backend.news.sources.newsroom.desks.science_nature import ANIMALS, OCEANS
from backend.news.sources.newsroom.desks.science_physics import PHYSICS
from backend.news.sources.newsroom.desks.science_sky import ASTRONOMY
from backend.news.sources.newsroom.desks.science_space import MISSIONS

SCIENCE = Desk("science", (MISSIONS, ARCHAEOLOGY, ANIMALS, PHYSICS, TRIALS, OCEANS, RETRACTIONS, ASTRONOMY), share=1.0)
