-- Names are kept once and rows refer to them. at is Unix seconds.

CREATE TABLE IF NOT EXISTS texts (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- made: buckets that end at or before it have their roll-ups.
-- gone_N: rows of N seconds before it have expired.
CREATE TABLE IF NOT EXISTS scopes (
  id          INTEGER PRIMARY KEY,
  name        TEXT    NOT NULL UNIQUE,
  rules_taken INTEGER NOT NULL DEFAULT 0,
  made        INTEGER NOT NULL,
  gone_1      INTEGER NOT NULL,
  gone_10     INTEGER NOT NULL,
  gone_60     INTEGER NOT NULL,
  gone_3600   INTEGER NOT NULL
) STRICT;

-- What each version of the rules of a scope has closed: ticks from starts up to
-- closed, not included; no row written under it is of a tick at or after top.
CREATE TABLE IF NOT EXISTS rules (
  scope  INTEGER NOT NULL REFERENCES scopes,
  rules  INTEGER NOT NULL,
  starts INTEGER NOT NULL,
  closed INTEGER NOT NULL,
  top    INTEGER NOT NULL,
  PRIMARY KEY (scope, rules)
) STRICT, WITHOUT ROWID;

-- Everything that names a row but for its time and late block. family: 0 by
-- originator, 1 by peer; name is of the one or the other.
CREATE TABLE IF NOT EXISTS series (
  id         INTEGER PRIMARY KEY,
  scope      INTEGER NOT NULL REFERENCES scopes,
  family     INTEGER NOT NULL,
  dependency INTEGER NOT NULL REFERENCES texts,
  route      INTEGER NOT NULL REFERENCES texts,
  name       INTEGER NOT NULL REFERENCES texts,
  wide       INTEGER NOT NULL,
  UNIQUE (scope, family, dependency, route, name, wide)
) STRICT;

-- late: -1, or the block of offsets that late records came from. counts holds
-- everything that was counted; the plain columns are for queries by hand.
CREATE TABLE IF NOT EXISTS ticks (
  at             INTEGER NOT NULL,
  series         INTEGER NOT NULL REFERENCES series,
  late           INTEGER NOT NULL,
  rules          INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  open           INTEGER NOT NULL,
  arrivals       INTEGER NOT NULL,
  verified       INTEGER NOT NULL,
  claimed        INTEGER NOT NULL,
  unattributable INTEGER NOT NULL,
  originals      INTEGER NOT NULL,
  counts         BLOB    NOT NULL,
  PRIMARY KEY (at, series, late)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS late_ticks ON ticks (late, series) WHERE late >= 0;

-- late in roll-ups: -1, or 0 for all late blocks together.
CREATE TABLE IF NOT EXISTS ten_seconds (
  at             INTEGER NOT NULL,
  series         INTEGER NOT NULL REFERENCES series,
  late           INTEGER NOT NULL,
  rules          INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  open           INTEGER NOT NULL,
  arrivals       INTEGER NOT NULL,
  verified       INTEGER NOT NULL,
  claimed        INTEGER NOT NULL,
  unattributable INTEGER NOT NULL,
  originals      INTEGER NOT NULL,
  counts         BLOB    NOT NULL,
  PRIMARY KEY (at, series, late)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS minutes (
  at             INTEGER NOT NULL,
  series         INTEGER NOT NULL REFERENCES series,
  late           INTEGER NOT NULL,
  rules          INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  open           INTEGER NOT NULL,
  arrivals       INTEGER NOT NULL,
  verified       INTEGER NOT NULL,
  claimed        INTEGER NOT NULL,
  unattributable INTEGER NOT NULL,
  originals      INTEGER NOT NULL,
  counts         BLOB    NOT NULL,
  PRIMARY KEY (at, series, late)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hours (
  at             INTEGER NOT NULL,
  series         INTEGER NOT NULL REFERENCES series,
  late           INTEGER NOT NULL,
  rules          INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  open           INTEGER NOT NULL,
  arrivals       INTEGER NOT NULL,
  verified       INTEGER NOT NULL,
  claimed        INTEGER NOT NULL,
  unattributable INTEGER NOT NULL,
  originals      INTEGER NOT NULL,
  counts         BLOB    NOT NULL,
  PRIMARY KEY (at, series, late)
) STRICT, WITHOUT ROWID;

-- The names behind a series, for queries by hand.
CREATE VIEW IF NOT EXISTS named AS
SELECT s.id AS series, c.name AS scope, s.family, d.text AS dependency, r.text AS route, n.text AS name, s.wide
FROM series s JOIN scopes c ON c.id = s.scope JOIN texts d ON d.id = s.dependency
JOIN texts r ON r.id = s.route JOIN texts n ON n.id = s.name;
