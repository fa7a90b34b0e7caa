"""Add when rounds open by themselves."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_timetable"
down_revision = "add_words_of_rounds"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "timetable",
        sa.Column("only", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=True),
        sa.Column("last", UtcDateTime(), nullable=True),
        sa.Column("trouble", sa.String(length=500), nullable=True),
        sa.CheckConstraint('"only" = 1', name=op.f("ck_timetable_one_row")),
        sa.PrimaryKeyConstraint("only", name=op.f("pk_timetable")),
    )


def downgrade() -> None:
    op.drop_table("timetable")
