"""Keep when each text came, by which near-duplicates are ordered."""

import sqlalchemy as sa
from alembic import op

revision = "add_arrival_of_texts"
down_revision = "add_check_ins_of_rounds"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # In place: a table made anew would take bodies, vectors and links with the old one.
    op.add_column("news", sa.Column("arrival", sa.Integer(), nullable=False, server_default="0"))
    # What is linked already was ordered by its own dates. In that order the links hold, and all of it came before now.
    connection = op.get_bind()
    ordered = connection.execute(sa.text("SELECT number FROM news ORDER BY published_at, number")).scalars().all()
    if ordered:
        rows = [{"at": number, "arrival": place} for place, number in enumerate(ordered, 1)]
        connection.execute(sa.text("UPDATE news SET arrival = :arrival WHERE number = :at"), rows)


def downgrade() -> None:
    op.drop_column("news", "arrival")
