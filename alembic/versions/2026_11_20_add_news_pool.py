"""Add the news pool: news, bodies, vectors, duplicates and their buckets, feeds, ingests, version."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_news_pool"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "news",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("abstract", sa.Text(), nullable=False),
        sa.Column("url", sa.String(2_000), nullable=False),
        sa.Column("publisher", sa.String(120), nullable=False),
        sa.Column("section", sa.String(80), nullable=False),
        sa.Column("topic", sa.String(80), nullable=False),
        sa.Column("story", sa.String(80), nullable=True),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.Column("weight", sa.Float(53), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("content_digest", sa.LargeBinary(16), nullable=False),
        sa.Column("added_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("taken_down_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("weight >= 0 AND weight <= 1", name=op.f("ck_news_weight_in_unit_interval")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_news")),
        sa.UniqueConstraint("id", name=op.f("uq_news_id")),
    )
    op.create_index(op.f("ix_news_published_at"), "news", ["published_at"])
    op.create_table(
        "bodies",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_bodies_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("news", name=op.f("pk_bodies")),
    )
    op.create_table(
        "vectors",
        sa.Column("encoder", sa.String(80), nullable=False),
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_vectors_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("encoder", "news", name=op.f("pk_vectors")),
    )
    op.create_index("ix_vectors_news", "vectors", ["news"])
    op.create_table(
        "duplicates",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("original", sa.Integer(), nullable=False),
        sa.Column("similarity", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_duplicates_news_news"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["original"], ["news.number"], name=op.f("fk_duplicates_original_news"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("news", name=op.f("pk_duplicates")),
    )
    op.create_index(op.f("ix_duplicates_original"), "duplicates", ["original"])
    op.create_table(
        "buckets",
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("news", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("bucket", "news", name=op.f("pk_buckets")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feeds",
        sa.Column("url", sa.String(2_000), nullable=False),
        sa.Column("etag", sa.String(500), nullable=True),
        sa.Column("last_modified", sa.String(100), nullable=True),
        sa.Column("fetched_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("url", name=op.f("pk_feeds")),
    )
    op.create_table(
        "ingests",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("updated", sa.Integer(), nullable=False),
        sa.Column("unchanged", sa.Integer(), nullable=False),
        sa.Column("duplicates", sa.Integer(), nullable=False),
        sa.Column("withheld", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_ingests")),
    )
    version = op.create_table(
        "pool_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("next_number", sa.Integer(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_pool_version_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pool_version")),
    )
    op.bulk_insert(version, [{"id": 1, "version": 0, "next_number": 1}])


def downgrade() -> None:
    for table in ("pool_version", "ingests", "feeds", "buckets", "duplicates", "vectors", "bodies", "news"):
        op.drop_table(table)
