"""Add rounds that wait their turn."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_round_queue"
down_revision = "add_sorters_of_news"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "round_queue",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("queued_at", UtcDateTime(), nullable=False),
        sa.Column("opened", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.ForeignKeyConstraint(["opened"], ["rounds.number"], name=op.f("fk_round_queue_opened_rounds")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_round_queue")),
    )


def downgrade() -> None:
    op.drop_table("round_queue")
