"""Add secure sums."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_secure_sums"
down_revision = "add_ingest_rejections"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "secure_sums",
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("total", sa.String(length=64), nullable=True),
        sa.Column("stage_sec", sa.Float(precision=53), nullable=False),
        sa.Column("closes_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint(
            "stage IN ('keys', 'shares', 'masked', 'agree', 'unmask', 'opened', 'failed')",
            name=op.f("ck_secure_sums_known_stage"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secure_sums")),
    )
    op.create_index(op.f("ix_secure_sums_stage"), "secure_sums", ["stage"])


def downgrade() -> None:
    op.drop_index(op.f("ix_secure_sums_stage"), table_name="secure_sums")
    op.drop_table("secure_sums")
