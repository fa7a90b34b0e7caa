"""Let feeds be refreshed by themselves: when each is due, how it failed last, and whether it is paused."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_feed_schedule"
down_revision = "add_round_retries"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("feeds") as feeds:
        feeds.add_column(sa.Column("added_at", UtcDateTime(), nullable=True))
        feeds.add_column(sa.Column("due_at", UtcDateTime(), nullable=True))
        feeds.add_column(sa.Column("failures", sa.Integer(), nullable=False, server_default="0"))
        feeds.add_column(sa.Column("error", sa.String(500), nullable=True))
        feeds.add_column(sa.Column("paused", sa.Boolean(), nullable=False, server_default=sa.false()))
    # Feeds of before were read by hand; each is due at once.
    op.execute("UPDATE feeds SET added_at = fetched_at, due_at = fetched_at")
    with op.batch_alter_table("feeds") as feeds:
        feeds.alter_column("added_at", existing_type=UtcDateTime(), nullable=False)
        feeds.alter_column("due_at", existing_type=UtcDateTime(), nullable=False)
        feeds.alter_column("fetched_at", existing_type=UtcDateTime(), nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM feeds WHERE fetched_at IS NULL")
    with op.batch_alter_table("feeds") as feeds:
        feeds.alter_column("fetched_at", existing_type=UtcDateTime(), nullable=False)
        for name in ("paused", "error", "failures", "due_at", "added_at"):
            feeds.drop_column(name)
