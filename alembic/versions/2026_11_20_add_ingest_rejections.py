"""Add the first rejected rows of a run to its line."""

import sqlalchemy as sa
from alembic import op

revision = "add_ingest_rejections"
down_revision = "add_releases_and_rounds"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("ingests", sa.Column("rejections", sa.JSON(), server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    op.drop_column("ingests", "rejections")
