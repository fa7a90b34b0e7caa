"""Let a followed feed have a section of its own, which all its news get."""

import sqlalchemy as sa
from alembic import op

revision = "add_feed_sections"
down_revision = "add_feed_schedule"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("feeds") as feeds:
        feeds.add_column(sa.Column("section", sa.String(80), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("feeds") as feeds:
        feeds.drop_column("section")
