-- first and last are Unix nanoseconds, peers a JSON list.
CREATE TABLE IF NOT EXISTS questions (
  key_hash   BLOB    NOT NULL,
  scope      INTEGER NOT NULL REFERENCES texts,
  dependency INTEGER NOT NULL REFERENCES texts,
  route      INTEGER NOT NULL REFERENCES texts,
  first      INTEGER NOT NULL,
  last       INTEGER NOT NULL,
  arrivals   INTEGER NOT NULL,
  originator INTEGER NOT NULL REFERENCES texts,
  peers      TEXT    NOT NULL,
  PRIMARY KEY (key_hash, scope, dependency, route, first)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS questions_by_last ON questions (last);

-- Offsets counted of a partition, from first up to next, not included.
CREATE TABLE IF NOT EXISTS counted (
  partition TEXT    NOT NULL,
  first     INTEGER NOT NULL,
  next      INTEGER NOT NULL,
  PRIMARY KEY (partition, first)
) STRICT, WITHOUT ROWID;

-- The states of sources, which alone know what is in them.
CREATE TABLE IF NOT EXISTS positions (
  name  TEXT PRIMARY KEY,
  state BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row, written to see whether writing is possible.
CREATE TABLE IF NOT EXISTS checks (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  times INTEGER NOT NULL
) STRICT;
