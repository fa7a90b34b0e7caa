"""Name each running sum by a token beside its hash, which an Ownfeed of before goes on to know it by."""

import sqlalchemy as sa
from alembic import op

revision = "add_names_of_running_sums"
down_revision = "add_pictures"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # no batch: SQLite would make the table anew, and what refers to its rows would go with the old one
    op.add_column("secure_sums", sa.Column("kept_as", sa.String(64), nullable=True))


def downgrade() -> None:
    op.drop_column("secure_sums", "kept_as")
