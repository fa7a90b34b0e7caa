"""Note which news each version of the pool has changed, so that a catalogue takes the changes alone."""

import sqlalchemy as sa
from alembic import op

revision = "add_pool_changes"
down_revision = "add_poll_counts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pool_changes",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("news", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("version", "news", name=op.f("pk_pool_changes")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("pool_version") as batch:
        batch.add_column(sa.Column("noted", sa.BigInteger(), server_default="0", nullable=False))
        batch.add_column(sa.Column("noted_from", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("pool_version") as batch:
        batch.drop_column("noted_from")
        batch.drop_column("noted")
    op.drop_table("pool_changes")
