"""Let a feed's publisher's pictures be fetched and served, and keep what became of each."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_pictures"
down_revision = "add_pool_changes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # no batch: SQLite would make the table anew, and what refers to its rows would go with the old one
    op.add_column("feeds", sa.Column("pictures", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("news", sa.Column("picture", sa.String(2_000), server_default="", nullable=False))
    op.create_table(
        "pictures",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(2_000), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("reason", sa.String(300), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("settled_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_pictures_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("news", name=op.f("pk_pictures")),
    )
    op.create_index(op.f("ix_pictures_sha256"), "pictures", ["sha256"])
    op.create_table(
        "picture_list",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("made_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_picture_list_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_picture_list")),
    )


def downgrade() -> None:
    op.drop_table("picture_list")
    op.drop_index(op.f("ix_pictures_sha256"), table_name="pictures")
    op.drop_table("pictures")
    op.drop_column("news", "picture")
    op.drop_column("feeds", "pictures")
