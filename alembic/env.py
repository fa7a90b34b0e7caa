"""Runs the migrations: on the connection that `backend.db.engine.migrate` hands over, or on a developer's URL.

By hand: `OWNFEED_BACKEND_DATABASE_URL=sqlite:///pool.db alembic upgrade head`.
"""

import os

from alembic import context
from sqlalchemy import Connection

from backend.db.engine import open_engine, writing
from backend.db.tables import all_tables


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=all_tables(),
        render_as_batch=True,
        compare_type=True,
        transactional_ddl=True,
    )
    context.run_migrations()


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    url = os.environ.get("OWNFEED_BACKEND_DATABASE_URL")
    if url is None:
        raise SystemExit("Set OWNFEED_BACKEND_DATABASE_URL, for example to sqlite:///pool.db.")
    engine = open_engine(url)
    with writing(engine) as connection:
        run(connection)
