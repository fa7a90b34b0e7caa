"""Call rounds of the paper's recall model by their new name: `uni_fedrec` trains the codebook of reports from here on.

Signed manifests keep the name that devices have joined under.
"""

from alembic import op

revision = "rename_printed_uni_fedrec"
down_revision = "add_round_queue"
branch_labels = None
depends_on = None

OLD, NEW = "uni_fedrec", "uni_fedrec_as_printed"
REQUESTS = (("round_orders", '"order"'), ("round_queue", '"order"'), ("timetable", "schedule"))


def upgrade() -> None:
    _rename(OLD, NEW)


def downgrade() -> None:
    _rename(NEW, OLD)


def _rename(old: str, new: str) -> None:
    op.execute(f"UPDATE rounds SET system = '{new}' WHERE system = '{old}'")
    for table, column in REQUESTS:
        wanted, written = (f'"system": "{name}"' for name in (old, new))
        op.execute(f"UPDATE {table} SET {column} = replace({column}, '{wanted}', '{written}')")
