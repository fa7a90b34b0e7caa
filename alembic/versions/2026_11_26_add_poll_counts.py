"""Keep how often devices ask each server process for rounds, so that machines count those that wait together."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_poll_counts"
down_revision = "add_schema_readers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "poll_counts",
        sa.Column("process", sa.String(length=16), nullable=False),
        sa.Column("told_at", UtcDateTime(), nullable=False),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("process", name=op.f("pk_poll_counts")),
    )


def downgrade() -> None:
    op.drop_table("poll_counts")
