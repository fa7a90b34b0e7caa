"""Let an order be a retry of the round before it, and name the sources that get no place in it."""

import sqlalchemy as sa
from alembic import op

revision = "add_round_retries"
down_revision = "add_sources_of_places"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("round_orders", sa.Column("retries", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("round_orders", sa.Column("refused_sources", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("round_orders", "refused_sources")
    op.drop_column("round_orders", "retries")
