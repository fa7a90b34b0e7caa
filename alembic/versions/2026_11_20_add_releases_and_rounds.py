"""Add releases, rounds and participations."""

import sqlalchemy as sa
from alembic import op

from backend.db.base import UtcDateTime

revision = "add_releases_and_rounds"
down_revision = "add_news_pool"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "releases",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.String(500), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_releases")),
    )
    op.create_table(
        "rounds",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("system", sa.String(80), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.String(500), nullable=True),
        sa.Column("release", sa.Integer(), nullable=False),
        sa.Column("published", sa.Integer(), nullable=True),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("cohort", sa.Integer(), nullable=False),
        sa.Column("cohort_minimum", sa.Integer(), nullable=False),
        sa.Column("admission", sa.Float(53), nullable=False),
        sa.Column("opened_at", UtcDateTime(), nullable=False),
        sa.Column("closes_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "cohort_minimum >= 1 AND cohort_minimum <= cohort", name=op.f("ck_rounds_minimum_within_cohort")
        ),
        sa.CheckConstraint("state IN ('open', 'updates', 'applied', 'failed')", name=op.f("ck_rounds_known_state")),
        sa.ForeignKeyConstraint(["published"], ["releases.number"], name=op.f("fk_rounds_published_releases")),
        sa.ForeignKeyConstraint(["release"], ["releases.number"], name=op.f("fk_rounds_release_releases")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_rounds")),
    )
    op.create_index(op.f("ix_rounds_state"), "rounds", ["state"])
    op.create_table(
        "participations",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(64), nullable=False),
        sa.Column("offered_at", UtcDateTime(), nullable=False),
        sa.Column("uploaded_at", UtcDateTime(), nullable=True),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["round"], ["rounds.number"], name=op.f("fk_participations_round_rounds"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_participations")),
        sa.UniqueConstraint("round", "pseudonym", name=op.f("uq_participations_round")),
    )


def downgrade() -> None:
    op.drop_table("participations")
    op.drop_index(op.f("ix_rounds_state"), "rounds")
    op.drop_table("rounds")
    op.drop_table("releases")
