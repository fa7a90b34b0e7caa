-- What the reader reads and does. Nothing of these tables leaves the device.
-- Times are microseconds since 1970 in UTC.

CREATE TABLE news (
  id TEXT PRIMARY KEY,
  card TEXT NOT NULL,
  words TEXT NOT NULL,
  shelved_at INTEGER NOT NULL
) STRICT;

CREATE TABLE body (
  news_id TEXT PRIMARY KEY REFERENCES news (id) ON DELETE CASCADE,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE vector (
  news_id TEXT NOT NULL REFERENCES news (id) ON DELETE CASCADE,
  encoder TEXT NOT NULL,
  float32 BLOB NOT NULL,
  PRIMARY KEY (news_id, encoder)
) STRICT;

CREATE TABLE click (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  news_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  UNIQUE (feed_id, news_id)
) STRICT;

CREATE INDEX click_by_time ON click (at, id);
CREATE INDEX click_by_news ON click (news_id);

CREATE TABLE impression (
  feed_id TEXT NOT NULL,
  news_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (feed_id, news_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX impression_by_time ON impression (at);

CREATE TABLE reaction (
  news_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('like', 'less', 'save')),
  at INTEGER NOT NULL,
  PRIMARY KEY (news_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE stance (
  kind TEXT NOT NULL CHECK (kind IN ('topic', 'section', 'publisher')),
  name TEXT NOT NULL,
  stance TEXT NOT NULL CHECK (stance IN ('follow', 'block')),
  at INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed (
  feed_id TEXT PRIMARY KEY,
  made_at INTEGER NOT NULL,
  content TEXT NOT NULL
) STRICT;

CREATE INDEX feed_by_time ON feed (made_at);

CREATE TABLE preference (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
