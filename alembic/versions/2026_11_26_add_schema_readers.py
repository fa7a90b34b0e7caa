"""Keep which revisions run on the schema as it is, so that servers of two versions share a database for a while."""

import sqlalchemy as sa
from alembic import op

revision = "add_schema_readers"
down_revision = "add_lost_releases"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schema_readers",
        sa.Column("revision", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("revision", name=op.f("pk_schema_readers")),
    )


def downgrade() -> None:
    op.drop_table("schema_readers")
