-- The one upload that this device makes in a round, bound to its bytes before they leave: written with its charge, and
-- never a second time, whichever process of this profile tries. Kept by `erase`, like a charge, without the hash.

CREATE TABLE round_upload (
  round TEXT PRIMARY KEY,
  payload_sha256 TEXT NOT NULL,
  bound_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
