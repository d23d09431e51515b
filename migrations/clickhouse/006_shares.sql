-- What the instances of a fleet tell each other of the questions that each counts, once
-- a second, in one insert of one block. Of what one member tells under one name the
-- newest stays. It is of use for some minutes: members say what is of now, and the
-- table never holds more than that.
--
-- written: the server's time, by which readers ask for what is new. state: in a form of
-- the program's own. See docs/clickhouse.md.
CREATE TABLE IF NOT EXISTS shares {cluster} (
  fleet   LowCardinality(String),
  member  LowCardinality(String),
  kind    UInt8,
  name    LowCardinality(String),
  at      Int64         CODEC(Delta, ZSTD(1)),
  seq     UInt64        CODEC(Delta, ZSTD(1)),
  state   String        CODEC(ZSTD(1)),
  written DateTime64(3) DEFAULT now64(3) CODEC(Delta, ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(seq)
ORDER BY (fleet, member, kind, name, at)
TTL toDateTime(written) + INTERVAL 20 MINUTE
SETTINGS merge_with_ttl_timeout = 600;
