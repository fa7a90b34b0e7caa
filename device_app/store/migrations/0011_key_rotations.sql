-- The key that releases must be signed with may hand over to another: which key the reader began with, and the number of
-- the last rotation followed.

ALTER TABLE pinned_key ADD COLUMN first_key BLOB;
ALTER TABLE pinned_key ADD COLUMN rotation INTEGER NOT NULL DEFAULT 0;
