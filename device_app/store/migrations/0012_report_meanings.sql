-- What the report in use means, so that this device can see by itself whether another release's codebook is the same
-- one in another encoder's space; under how many codebooks reports were drawn; and how often the encoder changed.

ALTER TABLE report_memo ADD COLUMN meaning TEXT NOT NULL DEFAULT '';
ALTER TABLE report_memo ADD COLUMN law TEXT NOT NULL DEFAULT '';
ALTER TABLE report_memo ADD COLUMN encoder TEXT NOT NULL DEFAULT '';
ALTER TABLE report_memo ADD COLUMN directions TEXT NOT NULL DEFAULT '';
ALTER TABLE report_memo ADD COLUMN gram BLOB NOT NULL DEFAULT x'';

-- Kept by `erase`, like a charge: a name is a hash of what the server published, and says nothing of the reader.
CREATE TABLE report_meaning (
  meaning TEXT PRIMARY KEY,
  first_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many encoders were completed before this one. What was computed from vectors that were let go of since is not to
-- be compared with what the same encoder is said to make now.
ALTER TABLE encoder ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

-- A request for recall names its release by the number modulo 16, which all devices share.
UPDATE report_memo SET payload = CAST(
  json_set(CAST(payload AS TEXT), '$.release', CAST(substr(release, 2) AS INTEGER) % 16) AS BLOB
);
