-- Words of the news on this device, for searching here. Rows that are not indexed yet are named in `unindexed`, so that
-- putting news on the shelf stays quick: the index catches up in the background, or when somebody searches.

CREATE VIRTUAL TABLE news_text USING fts5 (card, body, tokenize = "unicode61 remove_diacritics 2", prefix = "2 3");

CREATE TABLE unindexed (
  news_rowid INTEGER PRIMARY KEY
) STRICT;

INSERT INTO unindexed SELECT rowid FROM news;

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
