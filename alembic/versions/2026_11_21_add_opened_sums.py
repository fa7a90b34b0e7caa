"""Add what an opened secure sum was and cost to its round."""

import sqlalchemy as sa
from alembic import op

revision = "add_opened_sums"
down_revision = "add_secure_sums"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("survivors", sa.Integer(), nullable=True))
    op.add_column("rounds", sa.Column("epsilon", sa.Float(precision=53), nullable=True))
    op.add_column("rounds", sa.Column("delta", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    for column in ("delta", "epsilon", "survivors"):
        op.drop_column("rounds", column)
