-- When a story of a feed was looked at: half of its card in sight for a second, or opened. Null: it was laid out and never
-- came into sight. What an earlier version laid out counted as seen, and goes on counting.

ALTER TABLE impression ADD COLUMN viewed_at INTEGER;
UPDATE impression SET viewed_at = at;
CREATE INDEX impression_by_view ON impression (viewed_at);
