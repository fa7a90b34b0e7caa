-- The second view's own store: what the reader searches for and asks to be told of. Nothing of these tables leaves.
-- Times are microseconds since 1970 in UTC.

CREATE TABLE stance (
  kind TEXT NOT NULL CHECK (kind IN ('topic', 'section', 'publisher')),
  name TEXT NOT NULL,
  stance TEXT NOT NULL CHECK (stance IN ('follow', 'block')),
  at INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE search (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  words TEXT NOT NULL UNIQUE,
  saved_at INTEGER NOT NULL,
  looked_at INTEGER NOT NULL
) STRICT;

-- News that was opened from the results of a search, whatever its words were.
CREATE TABLE opened (
  news_id TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a search, a followed topic or an opened piece of news means: one vector by one encoder.
CREATE TABLE meaning (
  kind TEXT NOT NULL CHECK (kind IN ('search', 'topic', 'news')),
  name TEXT NOT NULL,
  encoder TEXT NOT NULL,
  float32 BLOB NOT NULL,
  made_at INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- This view's user tower under SEMI-FL-MV-DSSM. Written by the view's own process and by nobody else.
CREATE TABLE tower (
  model TEXT PRIMARY KEY,
  parameters BLOB NOT NULL,
  steps INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
