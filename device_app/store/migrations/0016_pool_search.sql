-- Words of the pool's cards, for searching the whole pool here. Cards are kept by day under a hash, so a day's words stay
-- as they are until no listing in use names it: `pool_indexed` says which rows a day has, and how many are in already.

CREATE VIRTUAL TABLE pool_text USING fts5 (
  card, id UNINDEXED, published_us UNINDEXED, tokenize = "unicode61 remove_diacritics 2", prefix = "2 3"
);

CREATE TABLE pool_indexed (
  shard TEXT PRIMARY KEY,
  first INTEGER NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  done INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
