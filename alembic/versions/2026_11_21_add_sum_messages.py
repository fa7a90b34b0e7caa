"""Keep what devices send to a secure sum as rows, no longer in its record."""

import json

import sqlalchemy as sa
from alembic import op

revision = "add_sum_messages"
down_revision = "add_round_orders"
branch_labels = None
depends_on = None

BROKEN_OFF = "The server was updated while the sum was under way."


def upgrade() -> None:
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
        "secure_sum_keys",
        sa.Column("sum", sa.String(length=80), nullable=False),
        sa.Column("key", sa.LargeBinary(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["sum"], ["secure_sums.name"], name=op.f("fk_secure_sum_keys_sum_secure_sums"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sum", "key", name=op.f("pk_secure_sum_keys")),
    )
    _shorten_records()


def downgrade() -> None:
    op.drop_table("secure_sum_keys")
    op.drop_table("secure_sum_messages")


def _shorten_records() -> None:
    """Leave of every record what it says of the whole sum. A sum under way fails: its round says why, and is over."""
    sums = sa.table(
        "secure_sums", sa.column("name"), sa.column("stage"), sa.column("record"), sa.column("total", sa.String)
    )
    connection = op.get_bind()
    for name, stage, text in connection.execute(sa.select(sums.c.name, sums.c.stage, sums.c.record)).all():
        before = json.loads(text)
        after = {"terms": before["terms"], "stage": stage, "reason": before.get("reason")}
        if stage not in ("opened", "failed"):
            after |= {"stage": "failed", "reason": BROKEN_OFF}
        change = sa.update(sums).where(sums.c.name == name)
        connection.execute(change.values(stage=after["stage"], record=json.dumps(after), total=None))
