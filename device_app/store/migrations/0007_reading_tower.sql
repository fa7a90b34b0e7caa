-- The reading view's user tower under SEMI-FL-MV-DSSM. Written by the view's own process and by nobody else.

CREATE TABLE tower (
  model TEXT PRIMARY KEY,
  parameters BLOB NOT NULL,
  steps INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
