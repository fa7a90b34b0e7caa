-- This device's part in secure sums that are under way. It holds keys; the row goes when the sum is over for the device.

CREATE TABLE sum_part (
  round TEXT PRIMARY KEY,
  offer TEXT NOT NULL,
  state TEXT NOT NULL,
  payload BLOB,
  sent INTEGER NOT NULL CHECK (sent IN (0, 1)),
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
