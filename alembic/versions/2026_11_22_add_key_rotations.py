"""Keep the statements by which one signing key hands over to the next."""

import sqlalchemy as sa
from alembic import op

revision = "add_key_rotations"
down_revision = "add_timetable"
branch_labels = None
depends_on = None


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_table("key_rotations")
