-- More that may be asked by hand and from Grafana, beside step 4. See docs/clickhouse.md.

-- Sums of everything that rows have counted, of all dependencies; those of two rows add.
-- questions and hop_questions are of what had not come before in the range that is asked:
-- only their sums over the whole of it mean something. from is rounded up to a whole step.
-- Seconds are NULL where the time of none of the arrivals is known that they are of: of
-- repeats, whose number may be an estimate, only without any. dead_seconds are NULL, too,
-- where that of no arrival is and some had a deadline: these may all have expired.
--
-- counts begins with its version and how many counters there are (3 bytes), and which are
-- not 0 (8 bytes). What is not of the version that is read here is an error. The rest are
-- varints: those counters, three times, four histograms (which have a head of
-- two if they are not empty), and carries (rows, n, claimed). See package aggregate.
CREATE VIEW IF NOT EXISTS measures {cluster} AS
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

-- Ranges of offsets that were counted, by partition: from first up to next, not included.
-- missing are those between the ranges before and this one, which were never read.
CREATE VIEW IF NOT EXISTS counted {cluster} AS
SELECT partition, first, next, if(count() OVER before = 0, 0, greatest(0, first - max(next) OVER before)) AS missing
FROM (SELECT name AS partition, last AS first, facts.first AS next FROM facts FINAL WHERE kind = 'counted' AND at = 0)
WINDOW before AS (PARTITION BY partition ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);

-- Minutes in which one question of a dependency was seen in two scopes.
CREATE VIEW IF NOT EXISTS splits {cluster} AS
SELECT DISTINCT dependency, toDateTime(at, 'UTC') AS time FROM facts FINAL WHERE kind = 'split';

-- What is stored, by kind of row: how many, those that others replace included, and from
-- when to when.
CREATE VIEW IF NOT EXISTS kept {cluster} AS
SELECT toString(kind) AS what, count() AS rows, if(max(at) > 1, toDateTime(min(at), 'UTC'), NULL) AS oldest, if(max(at) > 1, toDateTime(max(at), 'UTC'), NULL) AS newest
FROM facts GROUP BY kind;

-- The steps of this schema that were run.
CREATE VIEW IF NOT EXISTS steps {cluster} AS
SELECT number, name, at FROM migrations FINAL;
