-- Of questions stored by themselves. An episode is known by its last arrival: when
-- it is read again after a crash, its first ones may not be. lot tells apart what
-- one key asks on one route, and draws one in 256 (below 1 << 24). first and last
-- are Unix nanoseconds, peers a JSON list. It takes the place of a table that no
-- version has filled.
DROP TABLE IF EXISTS questions;

CREATE TABLE IF NOT EXISTS episodes (
  key_hash   BLOB    NOT NULL,
  dependency INTEGER NOT NULL REFERENCES texts,
  route      INTEGER NOT NULL REFERENCES texts,
  lot        INTEGER NOT NULL,
  scope      INTEGER NOT NULL REFERENCES texts,
  last       INTEGER NOT NULL,
  first      INTEGER NOT NULL,
  arrivals   INTEGER NOT NULL,
  originator INTEGER NOT NULL REFERENCES texts,
  peers      TEXT    NOT NULL,
  PRIMARY KEY (key_hash, dependency, route, lot, scope, last)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS episodes_by_last ON episodes (last, arrivals, originator);

-- Minutes in which one question of a dependency was seen in two scopes; at is Unix
-- seconds.
CREATE TABLE IF NOT EXISTS splits (
  dependency INTEGER NOT NULL REFERENCES texts,
  at         INTEGER NOT NULL,
  PRIMARY KEY (dependency, at)
) STRICT, WITHOUT ROWID;
