"""Let rounds follow each other, publish nothing, and keep what they came to."""

import sqlalchemy as sa
from alembic import op

revision = "add_round_orders"
down_revision = "add_opened_sums"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Columns without constraints: SQLite would have to make the table anew, and its places would go with the old one.
    op.add_column("rounds", sa.Column("follows", sa.Integer(), nullable=True))
    op.add_column("rounds", sa.Column("facts", sa.JSON(), nullable=True))
    op.add_column("rounds", sa.Column("memory", sa.LargeBinary(), nullable=True))
    op.create_index(op.f("ix_rounds_follows"), "rounds", ["follows"], unique=True)
    op.create_table(
        "round_orders",
        sa.Column("after", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("opened", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.ForeignKeyConstraint(["after"], ["rounds.number"], name=op.f("fk_round_orders_after_rounds")),
        sa.ForeignKeyConstraint(["opened"], ["rounds.number"], name=op.f("fk_round_orders_opened_rounds")),
        sa.PrimaryKeyConstraint("after", name=op.f("pk_round_orders")),
    )


def downgrade() -> None:
    op.drop_table("round_orders")
    op.drop_index(op.f("ix_rounds_follows"), "rounds")
    for column in ("memory", "facts", "follows"):
        op.drop_column("rounds", column)
