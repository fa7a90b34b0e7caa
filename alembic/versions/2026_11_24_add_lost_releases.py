"""Keep what a database that was put back from a backup doesn't know of the chain of releases."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_lost_releases"
down_revision = "rename_printed_uni_fedrec"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lost_releases",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("manifest_sha256", sa.String(length=64), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_lost_releases")),
    )


def downgrade() -> None:
    op.drop_table("lost_releases")
