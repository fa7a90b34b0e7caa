-- What private counts say of the news, the same for everybody; and which of the reader's displays and clicks this
-- device has contributed to a count. Times are microseconds since 1970 in UTC.

CREATE TABLE popularity (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  content BLOB NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

-- Popularity as it was when the feed was shown, for training: today's would know the clicks that came later.
ALTER TABLE impression ADD COLUMN popularity REAL;

-- Everything until `until` is contributed, or was passed over, and never is again. Written with the count's charge.
CREATE TABLE count_taken (
  round TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  displayed INTEGER NOT NULL,
  clicked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
