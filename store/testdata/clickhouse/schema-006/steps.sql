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

-- 005_measures.sql
CREATE VIEW IF NOT EXISTS measures  AS
SELECT toDateTime(f.at, 'UTC') AS time, f.dependency AS dependency, f.route AS route, if(f.family = 0, 'originator', 'peer') AS family, f.name AS name,
       sum(f.arrivals) AS arrivals, sum(f.verified) AS verified, sum(f.claimed) AS claimed, sum(f.unattributable) AS unattributable,
       sumMap(map('absent', n[indexOf(some, 45)], 'malformed', n[indexOf(some, 46)], 'unknown_originator', n[indexOf(some, 47)], 'forged', n[indexOf(some, 48)], 'expired', n[indexOf(some, 49)],
                  'not_yet_valid', n[indexOf(some, 50)], 'unsigned', n[indexOf(some, 51)], 'unchecked', n[indexOf(some, 52)], 'late', n[indexOf(some, 53)])) AS reasons,
       sum(f.originals) AS originals, verified + claimed - originals AS repeats,
       sum(n[indexOf(some, 25)]) AS reopened, sum(n[indexOf(some, 59)]) AS variance,
       sum(n[indexOf(some, 54)] + arraySum((r, c) -> if(bitShiftRight(r, 1) > f.back, c, 0), f.carried_rows, f.carried)) AS questions,
       sum(n[indexOf(some, 15)]) AS hop_numbered, sum(n[indexOf(some, 16)]) AS hop_ones, sum(n[indexOf(some, 17)]) AS hop_ones_known, sum(n[indexOf(some, 26)]) AS hop_trusted,
       sum(n[indexOf(some, 55)] + arraySum((r, c) -> if(bitShiftRight(r, 1) > f.back, c, 0), f.hop_carried_rows, f.hop_carried)) AS hop_questions,
       sum(n[indexOf(some, 2)]) AS answers, sum(n[indexOf(some, 6)]) AS refused, sum(n[indexOf(some, 4)]) AS successes, sum(n[indexOf(some, 5)]) AS good,
       sum(n[indexOf(some, 3)]) AS visible, sum(n[indexOf(some, 20)]) AS dead, sum(n[indexOf(some, 40)]) AS before_response,
       sum(n[indexOf(some, 40)] + n[indexOf(some, 41)] + n[indexOf(some, 42)] + n[indexOf(some, 43)]) AS disconnected, sum(n[indexOf(some, 19)]) AS expired,
       sum(n[indexOf(some, 60)]) AS untimed, sum(n[indexOf(some, 61)]) AS untimed_dead, sum(n[indexOf(some, 62)]) AS untimed_repeats, sum(n[indexOf(some, 63)]) AS unjudged,
       if(unjudged > 0 AND untimed >= arrivals OR untimed_dead > 0 AND untimed_dead >= disconnected + expired, NULL, sum(f.dead_ns) / 1e9) AS dead_seconds,
       if(untimed > 0 AND untimed >= arrivals, NULL, sum(f.busy_ns) / 1e9) AS busy_seconds,
       if(untimed_repeats > 0 AND untimed_repeats >= repeats AND sum(f.repeat_ns) = 0, NULL, sum(f.repeat_ns) / 1e9) AS repeat_seconds,
       sum(n[indexOf(some, 10)]) AS same_peer, sum(n[indexOf(some, 11)]) AS after_gone, sum(n[indexOf(some, 12)]) AS after_5xx, sum(n[indexOf(some, 13)]) AS after_429_503,
       sum(n[indexOf(some, 14)]) AS after_success, sum(n[indexOf(some, 21)]) AS after_in_flight,
       sum(n[indexOf(some, 34)]) AS retry_asked, sum(n[indexOf(some, 35)]) AS retry_returned, sum(n[indexOf(some, 36)]) AS retry_early,
       sum(n[indexOf(some, 18)]) AS stale, sum(n[indexOf(some, 30)]) AS overspent,
       sumMap(mapFromArrays(arrayMap(b -> toUInt64(if(b < 32, b + 1, bitShiftLeft(toInt64(64), greatest(b, 32) - 32))), f.ended_buckets), f.ended_counts)) AS ended,
       max(f.at >= s.closed) AS provisional
FROM (
  SELECT at, scope, family, dependency, route, name, rules, arrivals, verified, claimed, unattributable, originals, some, n, back,
         bitXor(bitShiftRight(toInt64(n[times]), 1), -toInt64(bitAnd(n[times], 1))) AS dead_ns,
         bitXor(bitShiftRight(toInt64(n[times + 1]), 1), -toInt64(bitAnd(n[times + 1], 1))) AS busy_ns,
         bitXor(bitShiftRight(toInt64(n[times + 2]), 1), -toInt64(bitAnd(n[times + 2], 1))) AS repeat_ns,
         arrayCumSum(arrayFilter((x, i) -> i % 2 = 1, ended, arrayEnumerate(ended))) AS ended_buckets, arrayFilter((x, i) -> i % 2 = 0, ended, arrayEnumerate(ended)) AS ended_counts,
         arrayFilter((x, i) -> i % 3 = 1, carries, arrayEnumerate(carries)) AS carried_rows, arrayFilter((x, i) -> i % 3 = 2, carries, arrayEnumerate(carries)) AS carried,
         arrayFilter((x, i) -> i % 3 = 1, hop_carries, arrayEnumerate(hop_carries)) AS hop_carried_rows, arrayFilter((x, i) -> i % 3 = 2, hop_carries, arrayEnumerate(hop_carries)) AS hop_carried
  FROM (
    SELECT at, scope, family, dependency, route, name, rules, arrivals, verified, claimed, unattributable, originals, some, n, back, times,
           arraySlice(n, times + 6, 2 * n[times + 3]) AS ended, arraySlice(n, list + 1, 3 * n[list]) AS carries, arraySlice(n, list + 2 + 3 * n[list], 3 * n[list + 1 + 3 * n[list]]) AS hop_carries
    FROM (
      SELECT at, scope, family, dependency, route, name, rules, arrivals, verified, claimed, unattributable, originals, some, n, back, times,
             arrayFold((p, i) -> p + 1 + 2 * (n[p] + (n[p] > 0)), range(4), toUInt64(times + 3)) AS list
      FROM (
        SELECT at, scope, family, dependency, route, name, rules, arrivals, verified, claimed, unattributable, originals,
               bitPositionsToArray(reinterpretAsUInt64(substring(counts, 4, 8))) AS some, length(some) + 1 AS times,
               arrayMap(v -> toUInt64(arraySum((x, i) -> bitShiftLeft(toUInt64(bitAnd(x, 127)), 7 * (i - 1)), v, arrayEnumerate(v))),
                        arrayReverseSplit(x -> x < 128, arrayMap(c -> reinterpretAsUInt8(c), splitByString('', substring(counts, 12 + throwIf(counts <> '' AND concat(substring(counts, 1, 1), substring(counts, 3, 1)) <> unhex('0105'), 'measures: rows of another version of auditor; run auditor migrate up')))))) AS n,
               multiIf(kind = 'tick', 1, kind = 'ten_seconds', 10, kind = 'minute', 60, 3600) AS step,
               intDiv(at, step) - intDiv(toUnixTimestamp({from:DateTime}) + step - 1, step) AS back
        FROM facts FINAL
        PREWHERE kind = {resolution:String} AND at >= toUnixTimestamp({from:DateTime}) AND at < toUnixTimestamp({to:DateTime}) AND NOT wide
      )
    )
  )
) AS f
LEFT JOIN scopes AS s ON s.scope = f.scope
WHERE {resolution:String} <> 'tick' OR NOT arrayExists(e -> e.rules > f.rules AND e.starts <= f.at AND f.at < e.closed, s.eras)
GROUP BY f.at, f.dependency, f.route, f.family, f.name;

CREATE VIEW IF NOT EXISTS counted  AS
SELECT partition, first, next, if(count() OVER before = 0, 0, greatest(0, first - max(next) OVER before)) AS missing
FROM (SELECT name AS partition, last AS first, facts.first AS next FROM facts FINAL WHERE kind = 'counted' AND at = 0)
WINDOW before AS (PARTITION BY partition ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);

CREATE VIEW IF NOT EXISTS splits  AS
SELECT DISTINCT dependency, toDateTime(at, 'UTC') AS time FROM facts FINAL WHERE kind = 'split';

CREATE VIEW IF NOT EXISTS kept  AS
SELECT toString(kind) AS what, count() AS rows, if(max(at) > 1, toDateTime(min(at), 'UTC'), NULL) AS oldest, if(max(at) > 1, toDateTime(max(at), 'UTC'), NULL) AS newest
FROM facts GROUP BY kind;

CREATE VIEW IF NOT EXISTS steps  AS
SELECT number, name, at FROM migrations FINAL;

-- 006_shares.sql
CREATE TABLE IF NOT EXISTS shares  (
  fleet   LowCardinality(String),
  member  LowCardinality(String),
  kind    UInt8,
  name    LowCardinality(String),
  at      Int64         CODEC(Delta, ZSTD(1)),
  seq     UInt64        CODEC(Delta, ZSTD(1)),
  state   String        CODEC(ZSTD(1)),
  written DateTime64(3) DEFAULT now64(3) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(seq)
ORDER BY (fleet, member, kind, name, at)
TTL toDateTime(written) + INTERVAL 20 MINUTE
SETTINGS merge_with_ttl_timeout = 600;

