"""Note which stories have their section from their vector, and by what, so that another encoder sorts them anew."""

import sqlalchemy as sa
from alembic import op

revision = "add_sorters_of_news"
down_revision = "add_arrival_of_texts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # In place: a table made anew would take bodies, vectors and links with the old one.
    op.add_column("news", sa.Column("sorted_by", sa.String(32), nullable=True))
    # Until now nothing told; a feed without a section of its own has had all its stories sorted.
    op.execute(
        "UPDATE news SET sorted_by = '' WHERE section <> 'unsorted' "
        "AND source IN (SELECT substr(url, 1, 200) FROM feeds WHERE section IS NULL)"
    )


def downgrade() -> None:
    op.drop_column("news", "sorted_by")
