-- The whole store of a device as of 0.2.0; the numbered files after this one change it. `web/device/store` reads them too.
-- Times are microseconds since 1970 in UTC.

-- What the reader reads and does. Nothing of these tables leaves the device.

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
  popularity REAL, -- as it was when the feed was shown, for training: today's would know the clicks that came later
  viewed_at INTEGER, -- half of its card was in sight for a second, or it was opened; null: it never came into sight
  PRIMARY KEY (feed_id, news_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX impression_by_time ON impression (at);
CREATE INDEX impression_by_view ON impression (viewed_at);

CREATE TABLE reaction (
  news_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('like', 'less', 'save')),
  at INTEGER NOT NULL,
  PRIMARY KEY (news_id, kind)
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

-- What leaves the device: what it cost, the very bytes, and what still waits to be sent.

CREATE TABLE charge (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  channel TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  parameters TEXT NOT NULL,
  epsilon REAL NOT NULL CHECK (epsilon >= 0),
  delta REAL NOT NULL CHECK (delta >= 0),
  payload_sha256 TEXT NOT NULL,
  subject TEXT NOT NULL
) STRICT;

CREATE INDEX charge_by_channel ON charge (channel, at, epsilon);
CREATE INDEX charge_by_payload ON charge (payload_sha256);

CREATE TABLE report_memo (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  release TEXT NOT NULL,
  payload BLOB NOT NULL,
  clear TEXT NOT NULL,
  clicks INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  -- What the report means, so that the device itself sees whether another release's codebook is the same one in another
  -- encoder's space.
  meaning TEXT NOT NULL,
  law TEXT NOT NULL,
  encoder TEXT NOT NULL,
  directions TEXT NOT NULL,
  gram BLOB NOT NULL
) STRICT;

CREATE TABLE parcel (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  subject TEXT NOT NULL UNIQUE,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  content_type TEXT NOT NULL,
  payload BLOB NOT NULL,
  sha256 TEXT NOT NULL,
  words TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  trouble TEXT
) STRICT;

CREATE INDEX parcel_by_due ON parcel (due_at);

CREATE TABLE traffic (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  purpose TEXT NOT NULL,
  words TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  head BLOB NOT NULL,
  body BLOB NOT NULL,
  body_bytes INTEGER NOT NULL,
  body_sha256 TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  epsilon REAL NOT NULL,
  status INTEGER,
  response_head BLOB,
  response_bytes INTEGER,
  ms REAL,
  trouble TEXT
) STRICT;

CREATE INDEX traffic_by_time ON traffic (at);

CREATE TABLE timing (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  device_ms TEXT NOT NULL,
  server_ms TEXT NOT NULL
) STRICT;

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
  pinned_at INTEGER NOT NULL,
  first_key BLOB, -- the key that the reader began with; releases may be signed with one that it handed over to
  rotation INTEGER NOT NULL DEFAULT 0 -- the number of the last rotation followed
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
  complete_at INTEGER NOT NULL,
  -- How many encoders were completed before this one. What was computed from vectors that are deleted since can't be
  -- compared with what the same encoder is said to make now.
  generation INTEGER NOT NULL DEFAULT 0
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

-- Reports that are sent again and again, and the pool as compressed codes for recall on the device.

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

-- This device's part in secure sums that are under way. It holds keys; the row goes when the sum is over for the device.

CREATE TABLE sum_part (
  round TEXT PRIMARY KEY,
  offer TEXT NOT NULL,
  state TEXT NOT NULL,
  payload BLOB,
  sent INTEGER NOT NULL CHECK (sent IN (0, 1)),
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Words of the news on this device, for searching here. Rows that are not indexed yet are named in `unindexed`, so that
-- putting news on the shelf stays quick: the index catches up in the background, or when somebody searches.

CREATE VIRTUAL TABLE news_text USING fts5 (card, body, tokenize = "unicode61 remove_diacritics 2", prefix = "2 3");

CREATE TABLE unindexed (
  news_rowid INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER news_text_after_put AFTER INSERT ON news BEGIN
  INSERT INTO unindexed SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM unindexed WHERE news_rowid = new.rowid);
END;

CREATE TRIGGER news_text_after_change AFTER UPDATE ON news BEGIN
  INSERT INTO unindexed SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM unindexed WHERE news_rowid = new.rowid);
END;

CREATE TRIGGER news_text_after_delete AFTER DELETE ON news BEGIN
  DELETE FROM news_text WHERE rowid = old.rowid;
  DELETE FROM unindexed WHERE news_rowid = old.rowid;
END;

CREATE TRIGGER news_text_after_body AFTER INSERT ON body BEGIN
  INSERT INTO unindexed SELECT rowid FROM news WHERE id = new.news_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE news_rowid = news.rowid);
END;

CREATE TRIGGER news_text_after_new_body AFTER UPDATE ON body BEGIN
  INSERT INTO unindexed SELECT rowid FROM news WHERE id = new.news_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE news_rowid = news.rowid);
END;

-- The reading view's user tower under SEMI-FL-MV-DSSM. Written by the view's own process and by nobody else.

CREATE TABLE tower (
  model TEXT PRIMARY KEY,
  parameters BLOB NOT NULL,
  steps INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What private counts say of the news, the same for everybody; and which of the reader's displays and clicks this
-- device has contributed to a count.

CREATE TABLE popularity (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  content BLOB NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

-- Everything until `until` is contributed, or was passed over, and never is again. Written with the count's charge.
CREATE TABLE count_taken (
  round TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  displayed INTEGER NOT NULL,
  clicked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What each view of this device has handed to the others: a protected gradient a round. Kept by `erase`, like a charge.

CREATE TABLE view_round (
  round TEXT NOT NULL,
  view TEXT NOT NULL,
  clip REAL NOT NULL,
  sigma REAL NOT NULL CHECK (sigma > 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (round, view)
) STRICT, WITHOUT ROWID;

-- Parameters of a model that no release brings and no upload takes, such as LSTUR's vector of its reader.

CREATE TABLE private_parameters (
  model TEXT PRIMARY KEY,
  encoder TEXT NOT NULL,
  parameters BLOB NOT NULL,
  steps INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Under how many codebooks reports were drawn.
-- Kept by `erase`, like a charge: a name is a hash of what the server published, and says nothing of the reader.
CREATE TABLE report_meaning (
  meaning TEXT PRIMARY KEY,
  first_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which releases this device has used, and the head of the chain of releases with each: see protocol/chain.py. Kept by `erase`.

CREATE TABLE release_chain (
  number INTEGER PRIMARY KEY,
  manifest_sha256 TEXT NOT NULL,
  head TEXT NOT NULL
) STRICT;

-- The one upload that this device makes in a round, bound to its bytes before they leave: written with its charge, and
-- never a second time, whichever process of this profile tries. Kept by `erase`, like a charge, without the hash.

CREATE TABLE round_upload (
  round TEXT PRIMARY KEY,
  payload_sha256 TEXT NOT NULL,
  bound_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

-- Publishers' pictures of stories, the same for everybody: shards by the hash of their blobs, and the list in use.
-- of_text: 0 for a card's picture, else the picture's number in the story's text.

CREATE TABLE picture_list (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  listing BLOB NOT NULL,
  kept_at INTEGER NOT NULL
) STRICT;

CREATE TABLE picture (
  shard TEXT NOT NULL,
  place INTEGER NOT NULL,
  news_id TEXT NOT NULL,
  of_text INTEGER NOT NULL,
  picture BLOB NOT NULL,
  PRIMARY KEY (shard, place)
) STRICT;

CREATE INDEX picture_by_news ON picture (news_id, of_text);

-- Stories that count as read: opened, or marked as read by the reader. A mark teaches the ranking nothing; only a click does.

CREATE TABLE read_story (
  news_id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  batch INTEGER NOT NULL -- stories that were marked together share a number, so that the mark can be undone; 0: opened
) STRICT, WITHOUT ROWID;

CREATE INDEX read_story_by_time ON read_story (at);
CREATE INDEX read_story_by_batch ON read_story (batch);

CREATE TRIGGER read_by_click AFTER INSERT ON click BEGIN
  INSERT INTO read_story (news_id, at, batch) VALUES (new.news_id, new.at, 0) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER read_without_click AFTER DELETE ON click
WHEN NOT EXISTS (SELECT 1 FROM click WHERE news_id = old.news_id) BEGIN
  DELETE FROM read_story WHERE news_id = old.news_id AND batch = 0;
END;

-- What lists and counts look up in the cards: every article with a card in `news` or in the pool's copy, once. Triggers
-- keep it, so that it follows from those tables and from `read_story` alone.

CREATE TABLE article (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  publisher TEXT NOT NULL,
  section TEXT NOT NULL,
  topic TEXT NOT NULL,
  story TEXT,
  published_at INTEGER NOT NULL, -- to the millisecond; 30 days earlier if its publisher gives no date
  is_read INTEGER NOT NULL CHECK (is_read IN (0, 1)),
  hidden_by INTEGER, -- the mute rule that hides it; null: none does
  lead TEXT -- the article whose card lists this one as another source's report; null: it has a card of its own
) STRICT;

CREATE INDEX article_by_time ON article (published_at, id);
CREATE INDEX article_by_publisher ON article (publisher, published_at, id, hidden_by);
CREATE INDEX article_by_section ON article (section, published_at);
CREATE INDEX article_by_topic ON article (topic, published_at);
CREATE INDEX article_by_section_and_topic ON article (section, topic) WHERE lead IS NULL;
CREATE INDEX article_by_story ON article (story) WHERE story IS NOT NULL;
CREATE INDEX article_by_lead ON article (lead) WHERE lead IS NOT NULL;
CREATE INDEX article_unread ON article (publisher, published_at, id) WHERE is_read = 0 AND hidden_by IS NULL;
CREATE INDEX article_hidden ON article (hidden_by, published_at) WHERE hidden_by IS NOT NULL;

CREATE TRIGGER article_of_news AFTER INSERT ON news WHEN json_valid(new.card) BEGIN
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read)
  SELECT new.id, coalesce(json_extract(new.card, '$.publisher'), ''), coalesce(json_extract(new.card, '$.section'), ''),
    coalesce(json_extract(new.card, '$.topic'), ''), json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(new.card, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
      - CASE json_extract(new.card, '$.dated') WHEN 0 THEN 2592000000000 ELSE 0 END,
    EXISTS (SELECT 1 FROM read_story WHERE news_id = new.id)
  WHERE true
  ON CONFLICT (id) DO UPDATE SET publisher = excluded.publisher, section = excluded.section, topic = excluded.topic,
    story = excluded.story, published_at = excluded.published_at, lead = NULL;
  DELETE FROM article WHERE lead = new.id;
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read, lead)
  SELECT json_extract(other.value, '$.id'), json_extract(other.value, '$.publisher'),
    coalesce(json_extract(new.card, '$.section'), ''), coalesce(json_extract(new.card, '$.topic'), ''),
    json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(other.value, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0),
    EXISTS (SELECT 1 FROM read_story WHERE news_id = json_extract(other.value, '$.id')), new.id
  FROM json_each(new.card, '$.also') AS other WHERE true
  ON CONFLICT (id) DO NOTHING;
END;

CREATE TRIGGER article_of_changed_news AFTER UPDATE OF card ON news WHEN json_valid(new.card) BEGIN
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read)
  SELECT new.id, coalesce(json_extract(new.card, '$.publisher'), ''), coalesce(json_extract(new.card, '$.section'), ''),
    coalesce(json_extract(new.card, '$.topic'), ''), json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(new.card, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
      - CASE json_extract(new.card, '$.dated') WHEN 0 THEN 2592000000000 ELSE 0 END,
    EXISTS (SELECT 1 FROM read_story WHERE news_id = new.id)
  WHERE true
  ON CONFLICT (id) DO UPDATE SET publisher = excluded.publisher, section = excluded.section, topic = excluded.topic,
    story = excluded.story, published_at = excluded.published_at, lead = NULL;
  DELETE FROM article WHERE lead = new.id;
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read, lead)
  SELECT json_extract(other.value, '$.id'), json_extract(other.value, '$.publisher'),
    coalesce(json_extract(new.card, '$.section'), ''), coalesce(json_extract(new.card, '$.topic'), ''),
    json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(other.value, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0),
    EXISTS (SELECT 1 FROM read_story WHERE news_id = json_extract(other.value, '$.id')), new.id
  FROM json_each(new.card, '$.also') AS other WHERE true
  ON CONFLICT (id) DO NOTHING;
END;

CREATE TRIGGER article_of_pool_card AFTER INSERT ON pool_card WHEN json_valid(new.card) BEGIN
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read)
  SELECT new.id, coalesce(json_extract(new.card, '$.publisher'), ''), coalesce(json_extract(new.card, '$.section'), ''),
    coalesce(json_extract(new.card, '$.topic'), ''), json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(new.card, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
      - CASE json_extract(new.card, '$.dated') WHEN 0 THEN 2592000000000 ELSE 0 END,
    EXISTS (SELECT 1 FROM read_story WHERE news_id = new.id)
  WHERE true
  ON CONFLICT (id) DO UPDATE SET publisher = excluded.publisher, section = excluded.section, topic = excluded.topic,
    story = excluded.story, published_at = excluded.published_at, lead = NULL;
  DELETE FROM article WHERE lead = new.id;
  INSERT INTO article (id, publisher, section, topic, story, published_at, is_read, lead)
  SELECT json_extract(other.value, '$.id'), json_extract(other.value, '$.publisher'),
    coalesce(json_extract(new.card, '$.section'), ''), coalesce(json_extract(new.card, '$.topic'), ''),
    json_extract(new.card, '$.story'),
    coalesce(CAST(round((julianday(json_extract(other.value, '$.published_at')) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0),
    EXISTS (SELECT 1 FROM read_story WHERE news_id = json_extract(other.value, '$.id')), new.id
  FROM json_each(new.card, '$.also') AS other WHERE true
  ON CONFLICT (id) DO NOTHING;
END;

CREATE TRIGGER article_without_news AFTER DELETE ON news WHEN NOT EXISTS (SELECT 1 FROM pool_card WHERE id = old.id) BEGIN
  DELETE FROM article WHERE id = old.id OR lead = old.id;
END;

CREATE TRIGGER article_without_pool_card AFTER DELETE ON pool_card
WHEN NOT EXISTS (SELECT 1 FROM pool_card WHERE id = old.id) AND NOT EXISTS (SELECT 1 FROM news WHERE id = old.id) BEGIN
  DELETE FROM article WHERE id = old.id OR lead = old.id;
END;

CREATE TRIGGER article_read AFTER INSERT ON read_story BEGIN
  UPDATE article SET is_read = 1 WHERE id = new.news_id;
END;

CREATE TRIGGER article_unread_again AFTER DELETE ON read_story BEGIN
  UPDATE article SET is_read = 0 WHERE id = old.news_id;
END;

-- What the reader never wants to see, and the articles that no rule was tried on yet. Without rules none is noted.

CREATE TABLE mute_rule (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  field TEXT NOT NULL CHECK (field IN ('anywhere', 'title', 'text', 'publisher', 'address')),
  kind TEXT NOT NULL CHECK (kind IN ('word', 'phrase', 'regex')),
  pattern TEXT NOT NULL,
  at INTEGER NOT NULL,
  UNIQUE (field, kind, pattern)
) STRICT;

CREATE TABLE unjudged (
  news_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TRIGGER unjudged_article AFTER INSERT ON article WHEN EXISTS (SELECT 1 FROM mute_rule) BEGIN
  INSERT INTO unjudged (news_id) VALUES (new.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unjudged_changed_article AFTER UPDATE OF published_at ON article WHEN EXISTS (SELECT 1 FROM mute_rule) BEGIN
  INSERT INTO unjudged (news_id) VALUES (new.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unjudged_body AFTER INSERT ON body WHEN EXISTS (SELECT 1 FROM mute_rule) BEGIN
  INSERT INTO unjudged (news_id) VALUES (new.news_id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unjudged_changed_body AFTER UPDATE ON body WHEN EXISTS (SELECT 1 FROM mute_rule) BEGIN
  INSERT INTO unjudged (news_id) VALUES (new.news_id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER unjudged_and_gone AFTER DELETE ON article BEGIN
  DELETE FROM unjudged WHERE news_id = old.id;
END;
