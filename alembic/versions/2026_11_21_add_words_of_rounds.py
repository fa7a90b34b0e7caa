"""Let a round say what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "add_words_of_rounds"
down_revision = "add_counts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("says", sa.String(length=500), nullable=True))


def downgrade() -> None:
    op.drop_column("rounds", "says")
