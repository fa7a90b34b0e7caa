-- Which releases this device has used, and the head of the chain of releases with each: see wire.chain. Kept by `erase`.

CREATE TABLE release_chain (
  number INTEGER PRIMARY KEY,
  manifest_sha256 TEXT NOT NULL,
  head TEXT NOT NULL
) STRICT;
