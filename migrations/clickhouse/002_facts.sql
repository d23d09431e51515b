-- Everything that a write brings is in one table, so that it is one insert of one
-- block: that is what ClickHouse makes visible as a whole or not at all. For the same
-- reason there are no partitions.
--
-- Of rows with one sorting key the one with the highest ver stays. A row that is
-- deleted hides those below it.
--
-- at: Unix seconds. late: -1, or the block of offsets that late records came from; 0 in
-- roll-ups is of all late blocks together. claim: that under which the row was
-- written. last, first: Unix nanoseconds of questions, and the offsets of what was
-- counted. counts: everything that was counted; the plain columns are for queries by
-- hand. See docs/clickhouse.md.
CREATE TABLE IF NOT EXISTS facts {cluster} (
  kind           Enum8('scope' = 1, 'gone' = 2, 'claim' = 3, 'counted' = 4, 'split' = 5, 'question' = 6,
                       'tick' = 10, 'ten_seconds' = 11, 'minute' = 12, 'hour' = 13),
  at             Int64                  CODEC(Delta, ZSTD(1)),
  scope          LowCardinality(String) CODEC(ZSTD(1)),
  family         UInt8                  CODEC(ZSTD(1)),
  dependency     LowCardinality(String) CODEC(ZSTD(1)),
  route          LowCardinality(String) CODEC(ZSTD(1)),
  name           LowCardinality(String) CODEC(ZSTD(1)),
  wide           Bool                   CODEC(ZSTD(1)),
  late           Int64                  CODEC(ZSTD(1)),
  key_hash       FixedString(16)        CODEC(ZSTD(1)),
  lot            UInt32                 CODEC(ZSTD(1)),
  last           Int64                  CODEC(Delta, ZSTD(1)),
  series         Int64                  CODEC(ZSTD(1)),
  rules          UInt32                 CODEC(T64, ZSTD(1)),
  version        UInt64                 CODEC(T64, ZSTD(1)),
  open           Bool                   CODEC(ZSTD(1)),
  arrivals       UInt64                 CODEC(T64, ZSTD(1)),
  verified       UInt64                 CODEC(T64, ZSTD(1)),
  claimed        UInt64                 CODEC(T64, ZSTD(1)),
  unattributable UInt64                 CODEC(T64, ZSTD(1)),
  originals      UInt64                 CODEC(T64, ZSTD(1)),
  counts         String                 CODEC(ZSTD(3)),
  originator     LowCardinality(String) CODEC(ZSTD(1)),
  first          Int64                  CODEC(Delta, ZSTD(1)),
  peers          Array(LowCardinality(String)) CODEC(ZSTD(1)),
  claim          UInt64                 CODEC(T64, ZSTD(1)),
  major          UInt64                 CODEC(T64, ZSTD(1)),
  minor          UInt64                 CODEC(T64, ZSTD(1)),
  ver            UInt128                MATERIALIZED bitShiftLeft(toUInt128(major), 64) + minor CODEC(ZSTD(1)),
  deleted        UInt8                  CODEC(ZSTD(1)),
  INDEX by_key key_hash TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_late late TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree(ver, deleted)
PRIMARY KEY (kind, at, scope)
ORDER BY (kind, at, scope, family, dependency, route, name, wide, late, key_hash, lot, last);
