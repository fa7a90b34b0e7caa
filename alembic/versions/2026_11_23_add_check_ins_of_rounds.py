"""Let a round say what became of the check-ins for it."""

import sqlalchemy as sa
from alembic import op

revision = "add_check_ins_of_rounds"
down_revision = "add_feed_sections"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("rounds") as rounds:
        rounds.add_column(sa.Column("check_ins", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("rounds") as rounds:
        rounds.drop_column("check_ins")
