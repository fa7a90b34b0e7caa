-- What came from the backend and is the same for everybody, and the rounds this device took part in.

CREATE TABLE release (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  release TEXT NOT NULL,
  manifest TEXT NOT NULL,
  signature BLOB NOT NULL,
  public_key BLOB NOT NULL,
  installed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE pinned_key (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  public_key BLOB NOT NULL,
  pinned_at INTEGER NOT NULL
) STRICT;

CREATE TABLE front (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  etag TEXT,
  release TEXT NOT NULL,
  encoder TEXT NOT NULL,
  news_ids TEXT NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

CREATE TABLE shard (
  encoder TEXT NOT NULL,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (encoder, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE encoder (
  encoder TEXT PRIMARY KEY,
  complete_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE participation (
  round TEXT PRIMARY KEY,
  system TEXT NOT NULL,
  task TEXT NOT NULL,
  release TEXT NOT NULL,
  state TEXT NOT NULL,
  detail TEXT,
  sent_bytes INTEGER NOT NULL,
  epsilon REAL NOT NULL,
  joined_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
