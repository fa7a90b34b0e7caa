"""Make the schema of 0.2.0. The numbered scripts after this one change it."""

import sqlalchemy as sa
from alembic import op

from backend.db.tables import UtcDateTime

revision = "0001_first_schema"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "buckets",
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("news", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("bucket", "news", name=op.f("pk_buckets")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feed_hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("asked_at", UtcDateTime(), nullable=False),
        sa.Column("rests_sec", sa.Float(precision=53), nullable=False),
        sa.Column("pause_sec", sa.Float(precision=53), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("refused_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_feed_hosts")),
    )
    op.create_table(
        "feeds",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("etag", sa.String(length=500), nullable=True),
        sa.Column("last_modified", sa.String(length=100), nullable=True),
        sa.Column("fetched_at", UtcDateTime(), nullable=True),
        sa.Column("added_at", UtcDateTime(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.String(length=500), nullable=True),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("section", sa.String(length=80), nullable=True),
        sa.Column("pictures", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("full_text", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("full_text_error", sa.String(length=500), nullable=True),
        sa.Column("title", sa.String(length=500), server_default="", nullable=False),
        sa.Column("name", sa.String(length=120), server_default="", nullable=False),
        sa.Column("site", sa.String(length=2000), server_default="", nullable=False),
        sa.Column("folder", sa.JSON(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("unverified", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("proxy", sa.String(length=500), nullable=True),
        sa.Column("removed_at", UtcDateTime(), nullable=True),
        sa.Column("pace_sec", sa.Float(precision=53), nullable=True),
        sa.Column("moved_to", sa.String(length=2000), nullable=True),
        sa.Column("ended", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=True),
        sa.Column("taken", sa.Integer(), server_default="0", nullable=False),
        sa.Column("refused", sa.Integer(), server_default="0", nullable=False),
        sa.Column("refusals", sa.JSON(), server_default=sa.text("'[]'"), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_feeds")),
        sa.UniqueConstraint("url", name=op.f("uq_feeds_url")),
    )
    op.create_table(
        "ingests",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("updated", sa.Integer(), nullable=False),
        sa.Column("unchanged", sa.Integer(), nullable=False),
        sa.Column("duplicates", sa.Integer(), nullable=False),
        sa.Column("withheld", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("rejections", sa.JSON(), server_default=sa.text("'[]'"), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_ingests")),
    )
    op.create_table(
        "lost_releases",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("manifest_sha256", sa.String(length=64), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_lost_releases")),
    )
    op.create_table(
        "news",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("arrival", sa.Integer(), server_default="0", nullable=False),
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("abstract", sa.Text(), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("publisher", sa.String(length=120), nullable=False),
        sa.Column("section", sa.String(length=80), nullable=False),
        sa.Column("sorted_by", sa.String(length=32), nullable=True),
        sa.Column("topic", sa.String(length=80), nullable=False),
        sa.Column("story", sa.String(length=80), nullable=True),
        sa.Column("picture", sa.String(length=2000), server_default="", nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.Column("dated", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("kept", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("weight", sa.Float(precision=53), nullable=False),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.Column("content_digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("added_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("taken_down_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("weight >= 0 AND weight <= 1", name=op.f("ck_news_weight_in_unit_interval")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_news")),
        sa.UniqueConstraint("id", name=op.f("uq_news_id")),
    )
    op.create_index(op.f("ix_news_published_at"), "news", ["published_at"], unique=False)
    op.create_index("ix_news_source", "news", ["source", "published_at"], unique=False)
    op.create_table(
        "picture_list",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("made_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_picture_list_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_picture_list")),
    )
    op.create_table(
        "poll_counts",
        sa.Column("process", sa.String(length=16), nullable=False),
        sa.Column("told_at", UtcDateTime(), nullable=False),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("process", name=op.f("pk_poll_counts")),
    )
    op.create_table(
        "pool_changes",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("news", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("version", "news", name=op.f("pk_pool_changes")),
        sqlite_with_rowid=False,
    )
    version = op.create_table(
        "pool_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("next_number", sa.Integer(), nullable=False),
        sa.Column("noted_from", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_pool_version_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pool_version")),
    )
    op.create_table(
        "releases",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_releases")),
    )
    op.create_table(
        "secure_sums",
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("total", sa.String(length=64), nullable=True),
        sa.Column("stage_sec", sa.Float(precision=53), nullable=False),
        sa.Column("closes_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint(
            "stage IN ('keys', 'shares', 'masked', 'agree', 'unmask', 'opened', 'failed')",
            name=op.f("ck_secure_sums_known_stage"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secure_sums")),
    )
    op.create_index(op.f("ix_secure_sums_stage"), "secure_sums", ["stage"], unique=False)
    op.create_table(
        "timetable",
        sa.Column("only", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=True),
        sa.Column("last", UtcDateTime(), nullable=True),
        sa.Column("trouble", sa.String(length=500), nullable=True),
        sa.CheckConstraint('"only" = 1', name=op.f("ck_timetable_one_row")),
        sa.PrimaryKeyConstraint("only", name=op.f("pk_timetable")),
    )
    op.create_table(
        "bodies",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_bodies_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("news", name=op.f("pk_bodies")),
    )
    op.create_table(
        "text_pictures",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_text_pictures_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("news", "place", name=op.f("pk_text_pictures")),
    )
    op.create_table(
        "duplicates",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("original", sa.Integer(), nullable=False),
        sa.Column("similarity", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_duplicates_news_news"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["original"], ["news.number"], name=op.f("fk_duplicates_original_news"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("news", name=op.f("pk_duplicates")),
    )
    op.create_index(op.f("ix_duplicates_original"), "duplicates", ["original"], unique=False)
    op.create_table(
        "key_rotations",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rotation", sa.Text(), nullable=False),
        sa.Column("by_old_key", sa.LargeBinary(), nullable=False),
        sa.Column("by_new_key", sa.LargeBinary(), nullable=False),
        sa.Column("release", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["release"], ["releases.number"], name=op.f("fk_key_rotations_release_releases")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_key_rotations")),
    )
    op.create_table(
        "pictures",
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("of_text", sa.Integer(), autoincrement=False, server_default="0", nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("reason", sa.String(length=300), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("settled_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_pictures_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("news", "of_text", name=op.f("pk_pictures")),
    )
    op.create_index(op.f("ix_pictures_sha256"), "pictures", ["sha256"], unique=False)
    op.create_table(
        "rounds",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("system", sa.String(length=80), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("release", sa.Integer(), nullable=False),
        sa.Column("published", sa.Integer(), nullable=True),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("cohort", sa.Integer(), nullable=False),
        sa.Column("cohort_minimum", sa.Integer(), nullable=False),
        sa.Column("admission", sa.Float(precision=53), nullable=False),
        sa.Column("opened_at", UtcDateTime(), nullable=False),
        sa.Column("closes_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("survivors", sa.Integer(), nullable=True),
        sa.Column("epsilon", sa.Float(precision=53), nullable=True),
        sa.Column("delta", sa.Float(precision=53), nullable=True),
        sa.Column("follows", sa.Integer(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("memory", sa.LargeBinary(), nullable=True),
        sa.Column("says", sa.String(length=500), nullable=True),
        sa.Column("places_refused", sa.Integer(), server_default="0", nullable=False),
        sa.Column("check_ins", sa.JSON(), nullable=True),
        sa.CheckConstraint("state IN ('open', 'updates', 'applied', 'failed')", name=op.f("ck_rounds_known_state")),
        sa.CheckConstraint(
            "cohort_minimum >= 1 AND cohort_minimum <= cohort", name=op.f("ck_rounds_minimum_within_cohort")
        ),
        sa.ForeignKeyConstraint(["published"], ["releases.number"], name=op.f("fk_rounds_published_releases")),
        sa.ForeignKeyConstraint(["release"], ["releases.number"], name=op.f("fk_rounds_release_releases")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_rounds")),
    )
    op.create_index(op.f("ix_rounds_follows"), "rounds", ["follows"], unique=True)
    op.create_index(op.f("ix_rounds_state"), "rounds", ["state"], unique=False)
    op.create_table(
        "secure_sum_keys",
        sa.Column("sum", sa.String(length=80), nullable=False),
        sa.Column("key", sa.LargeBinary(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["sum"], ["secure_sums.name"], name=op.f("fk_secure_sum_keys_sum_secure_sums"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sum", "key", name=op.f("pk_secure_sum_keys")),
    )
    op.create_table(
        "secure_sum_messages",
        sa.Column("sum", sa.String(length=80), nullable=False),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("member", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("pseudonym", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sum"], ["secure_sums.name"], name=op.f("fk_secure_sum_messages_sum_secure_sums"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sum", "stage", "member", name=op.f("pk_secure_sum_messages")),
        sa.UniqueConstraint("sum", "stage", "pseudonym", name=op.f("uq_secure_sum_messages_sum")),
    )
    op.create_table(
        "vectors",
        sa.Column("encoder", sa.String(length=80), nullable=False),
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_vectors_news_news"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("encoder", "news", name=op.f("pk_vectors")),
    )
    op.create_index("ix_vectors_news", "vectors", ["news"], unique=False)
    op.create_table(
        "count_rounds",
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("counted_at", UtcDateTime(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("displays_variance", sa.Float(precision=53), nullable=False),
        sa.Column("clicks_variance", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["round"], ["rounds.number"], name=op.f("fk_count_rounds_round_rounds")),
        sa.PrimaryKeyConstraint("round", name=op.f("pk_count_rounds")),
    )
    op.create_index(op.f("ix_count_rounds_counted_at"), "count_rounds", ["counted_at"], unique=False)
    op.create_table(
        "participations",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(length=64), nullable=False),
        sa.Column("offered_at", UtcDateTime(), nullable=False),
        sa.Column("uploaded_at", UtcDateTime(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["round"], ["rounds.number"], name=op.f("fk_participations_round_rounds"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_participations")),
        sa.UniqueConstraint("round", "pseudonym", name=op.f("uq_participations_round")),
    )
    op.create_table(
        "round_orders",
        sa.Column("after", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("opened", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("refused_sources", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["after"], ["rounds.number"], name=op.f("fk_round_orders_after_rounds")),
        sa.ForeignKeyConstraint(["opened"], ["rounds.number"], name=op.f("fk_round_orders_opened_rounds")),
        sa.PrimaryKeyConstraint("after", name=op.f("pk_round_orders")),
    )
    op.create_table(
        "round_queue",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("queued_at", UtcDateTime(), nullable=False),
        sa.Column("opened", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.ForeignKeyConstraint(["opened"], ["rounds.number"], name=op.f("fk_round_queue_opened_rounds")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_round_queue")),
    )
    op.create_table(
        "news_counts",
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("news", sa.Integer(), nullable=False),
        sa.Column("displays", sa.Float(precision=53), nullable=False),
        sa.Column("clicks", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(["news"], ["news.number"], name=op.f("fk_news_counts_news_news"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["round"], ["count_rounds.round"], name=op.f("fk_news_counts_round_count_rounds"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("round", "news", name=op.f("pk_news_counts")),
    )
    op.create_index("ix_news_counts_news", "news_counts", ["news"], unique=False)
    op.bulk_insert(version, [{"id": 1, "version": 0, "next_number": 1}])


def downgrade() -> None:
    for table in (
        "news_counts",
        "round_queue",
        "round_orders",
        "participations",
        "count_rounds",
        "vectors",
        "secure_sum_messages",
        "secure_sum_keys",
        "rounds",
        "pictures",
        "key_rotations",
        "duplicates",
        "text_pictures",
        "bodies",
        "timetable",
        "secure_sums",
        "releases",
        "pool_version",
        "pool_changes",
        "poll_counts",
        "picture_list",
        "news",
        "lost_releases",
        "ingests",
        "feeds",
        "feed_hosts",
        "buckets",
    ):
        op.drop_table(table)
