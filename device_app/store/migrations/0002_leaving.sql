-- What leaves the device: what it cost, the very bytes, and what still waits to be sent.

CREATE TABLE charge (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  channel TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  parameters TEXT NOT NULL,
  epsilon REAL NOT NULL CHECK (epsilon >= 0),
  delta REAL NOT NULL CHECK (delta >= 0),
  payload_sha256 TEXT NOT NULL,
  subject TEXT NOT NULL
) STRICT;

CREATE INDEX charge_by_channel ON charge (channel, at, epsilon);
CREATE INDEX charge_by_payload ON charge (payload_sha256);

CREATE TABLE report_memo (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  release TEXT NOT NULL,
  payload BLOB NOT NULL,
  clear TEXT NOT NULL,
  clicks INTEGER NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE parcel (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  subject TEXT NOT NULL UNIQUE,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  content_type TEXT NOT NULL,
  payload BLOB NOT NULL,
  sha256 TEXT NOT NULL,
  words TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  trouble TEXT
) STRICT;

CREATE INDEX parcel_by_due ON parcel (due_at);

CREATE TABLE traffic (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  purpose TEXT NOT NULL,
  words TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  head BLOB NOT NULL,
  body BLOB NOT NULL,
  body_bytes INTEGER NOT NULL,
  body_sha256 TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  epsilon REAL NOT NULL,
  status INTEGER,
  response_head BLOB,
  response_bytes INTEGER,
  ms REAL,
  trouble TEXT
) STRICT;

CREATE INDEX traffic_by_time ON traffic (at);

CREATE TABLE timing (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  device_ms TEXT NOT NULL,
  server_ms TEXT NOT NULL
) STRICT;
