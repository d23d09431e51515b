-- 001_migrations.sql
CREATE TABLE IF NOT EXISTS migrations  (
  number UInt32,
  name   String,
  at     DateTime64(3) DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (number, name);

CREATE TABLE IF NOT EXISTS migration_runs  (
  token String,
  ended UInt8,
  at    DateTime64(3) DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY at;

-- 002_facts.sql
CREATE TABLE IF NOT EXISTS facts  (
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
ENGINE = ReplacingMergeTree(ver, deleted)
PRIMARY KEY (kind, at, scope)
ORDER BY (kind, at, scope, family, dependency, route, name, wide, late, key_hash, lot, last);

-- 003_rest.sql
CREATE TABLE IF NOT EXISTS positions  (
  name  String,
  state String CODEC(ZSTD(1)),
  turn  UInt64
)
ENGINE = ReplacingMergeTree(turn)
ORDER BY name;

CREATE TABLE IF NOT EXISTS takings  (
  scope String,
  rules UInt32,
  token String
)
ENGINE = MergeTree
ORDER BY (scope, rules);

CREATE TABLE IF NOT EXISTS checks  (
  id UInt8,
  at DateTime64(3) DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY id;

-- 004_views.sql
CREATE VIEW IF NOT EXISTS scopes  AS
SELECT scope, eras,
       arrayFold((a, e) -> if(e.closed > -9223372036854775808, e.closed, a), eras, toInt64(-9223372036854775808)) AS closed
FROM (
  SELECT scope, JSONExtract(counts, 'eras', 'Array(Tuple(rules UInt32, starts Int64, closed Int64, top Int64))') AS eras
  FROM facts FINAL
  WHERE kind = 'scope' AND at = 0
);

CREATE VIEW IF NOT EXISTS figures  AS
SELECT toDateTime(f.at, 'UTC') AS time, f.dependency AS dependency, f.route AS route, if(f.family = 0, 'originator', 'peer') AS family, f.name AS name,
       sum(f.arrivals) AS arrivals, sum(f.verified) AS verified, sum(f.claimed) AS claimed, sum(f.unattributable) AS unattributable,
       sum(f.originals) AS originals, verified + claimed - originals AS repeats,
       max(f.at >= s.closed) AS provisional
FROM (
  SELECT at, scope, family, dependency, route, name, rules, arrivals, verified, claimed, unattributable, originals
  FROM facts FINAL
  PREWHERE kind = {resolution:String} AND at >= toUnixTimestamp({from:DateTime}) AND at < toUnixTimestamp({to:DateTime}) AND dependency = {dependency:String}
) AS f
LEFT JOIN scopes AS s ON s.scope = f.scope
WHERE {resolution:String} <> 'tick' OR NOT arrayExists(e -> e.rules > f.rules AND e.starts <= f.at AND f.at < e.closed, s.eras)
GROUP BY f.at, f.dependency, f.route, f.family, f.name;

CREATE VIEW IF NOT EXISTS questions  AS
SELECT hex(key_hash) AS key_hash, scope, dependency, route, originator, peers, arrivals,
       fromUnixTimestamp64Nano(first, 'UTC') AS first_arrival, fromUnixTimestamp64Nano(last, 'UTC') AS last_arrival
FROM facts FINAL
PREWHERE kind = 'question' AND at >= toUnixTimestamp({from:DateTime}) AND at < toUnixTimestamp({to:DateTime}) AND dependency = {dependency:String};

