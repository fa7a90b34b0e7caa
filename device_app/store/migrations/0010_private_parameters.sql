-- Parameters of a model that no release brings and no upload takes, such as LSTUR's vector of its reader.

CREATE TABLE private_parameters (
  model TEXT PRIMARY KEY,
  encoder TEXT NOT NULL,
  parameters BLOB NOT NULL,
  steps INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
