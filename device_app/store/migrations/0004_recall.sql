-- Reports that are sent again for good, and the pool as compressed codes for recall on the device.

-- What was drawn once for a true value under one book of prototypes. The true value never leaves.
CREATE TABLE drawn_report (
  mechanism TEXT NOT NULL,
  book TEXT NOT NULL,
  value INTEGER NOT NULL,
  report TEXT NOT NULL,
  drawn_at INTEGER NOT NULL,
  PRIMARY KEY (mechanism, book, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE pool (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  listing BLOB NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

CREATE TABLE pool_part (
  sha256 TEXT PRIMARY KEY,
  content BLOB NOT NULL
) STRICT;

CREATE TABLE pool_card (
  shard TEXT NOT NULL,
  place INTEGER NOT NULL,
  id TEXT NOT NULL,
  card TEXT NOT NULL,
  PRIMARY KEY (shard, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX pool_card_by_news ON pool_card (id);
