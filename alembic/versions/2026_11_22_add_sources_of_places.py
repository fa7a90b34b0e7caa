"""Let a place say from which source it was asked for, while its round is under way, and a round how many it refused."""

import sqlalchemy as sa
from alembic import op

revision = "add_sources_of_places"
down_revision = "add_key_rotations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("participations", sa.Column("source", sa.String(length=32), nullable=True))
    op.add_column("rounds", sa.Column("places_refused", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("rounds", "places_refused")
    op.drop_column("participations", "source")
