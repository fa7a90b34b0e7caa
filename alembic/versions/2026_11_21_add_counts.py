"""Keep what private counts of displays and clicks came to."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_counts"
down_revision = "add_sum_messages"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "count_rounds",
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("counted_at", UtcDateTime(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("displays_variance", sa.Float(precision=53), nullable=False),
        sa.Column("clicks_variance", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["round"], ["rounds.number"], name=op.f("fk_count_rounds_round_rounds")),
        sa.PrimaryKeyConstraint("round", name=op.f("pk_count_rounds")),
    )
    op.create_index(op.f("ix_count_rounds_counted_at"), "count_rounds", ["counted_at"])
    op.create_table(
        "news_counts",
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("displays", sa.Float(precision=53), nullable=False),
        sa.Column("clicks", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["round"],
            ["count_rounds.round"],
            name=op.f("fk_news_counts_round_count_rounds"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_news_counts_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("round", "news", name=op.f("pk_news_counts")),
    )
    op.create_index(op.f("ix_news_counts_news"), "news_counts", ["news"])


def downgrade() -> None:
    op.drop_table("news_counts")
    op.drop_table("count_rounds")
