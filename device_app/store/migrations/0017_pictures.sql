-- Publishers' pictures of stories, the same for everybody: shards by the hash of their blobs, and the list in use.

CREATE TABLE picture_list (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  listing BLOB NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

CREATE TABLE picture (
  shard TEXT NOT NULL,
  place INTEGER NOT NULL,
  news_id TEXT NOT NULL,
  picture BLOB NOT NULL,
  PRIMARY KEY (shard, place)
) STRICT;

CREATE INDEX picture_by_news ON picture (news_id);
