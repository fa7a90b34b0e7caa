-- What each view of this device has handed to the others: a protected gradient a round. Kept by `erase`, like a charge.

CREATE TABLE view_round (
  round TEXT NOT NULL,
  view TEXT NOT NULL,
  clip REAL NOT NULL,
  sigma REAL NOT NULL CHECK (sigma > 0),
  at INTEGER NOT NULL,
  PRIMARY KEY (round, view)
) STRICT, WITHOUT ROWID;
