"""Whether a file is a whole SQLite database, as far as its head and its length tell without reading it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url

from backend.db.engine import DatabaseDamaged, is_open_here

MAGIC, HEAD_BYTES = b"SQLite format 3\x00", 100


def check_sqlite_file(url: str, *, used: bool) -> None:
    """Raises DatabaseDamaged for another file, one that is cut off, and an empty one that held something.

    used: whether anything else says that the database held something: an empty one is what a first start leaves that
    was killed. What lies in the log that SQLite keeps beside it is SQLite's to judge, as is what lies inside the pages.
    """
    parsed = make_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    if is_open_here(path):
        return  # to look would cost these their locks; a server looks before it opens any
    log = path.with_name(f"{path.name}-wal")
    # Before the file: what another process brings in from there meanwhile comes page by page, the head first.
    if log.is_file() and log.stat().st_size:
        return  # pages of the file may be newer there
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    size = path.stat().st_size
    if not size:
        if used:
            raise DatabaseDamaged(url, "it is empty, and releases were published from it")
        return
    if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
        raise DatabaseDamaged(url, "it is no SQLite database")
    # The format of the file, section 1.3: the size of a page, and how many there are.
    page_bytes = int.from_bytes(head[16:18], "big")
    pages, is_told = int.from_bytes(head[28:32], "big"), head[24:28] == head[92:96]
    expected = pages * (65_536 if page_bytes == 1 else page_bytes)
    if is_told and size < expected:
        raise DatabaseDamaged(url, f"it is cut off after {size:,} of {expected:,} bytes")
