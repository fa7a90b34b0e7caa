"""The education desk."""

from __future__ import annotations

from backend.news.sources.newsroom.beat import Desk
from backend.news.sources.newsroom.desks.education_schools import CHILDCARE, SCHOOL, STUDENT
from backend.news.sources.newsroom.desks.education_system import EXAM, REFORM, TEACHERS, UNIVERSITY
from backend.news.sources.newsroom.desks.education_work import APPRENTICES, TEACHER_STRIKE

EDUCATION = Desk(
    "education",
    (SCHOOL, UNIVERSITY, REFORM, EXAM, TEACHERS, TEACHER_STRIKE, CHILDCARE, STUDENT, APPRENTICES),
    share=0.9,
)
