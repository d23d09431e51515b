-- What may be asked by hand and from Grafana: the names and columns of these views
-- stay, whatever becomes of the tables. See docs/clickhouse.md.

-- Up to where each scope is final.
CREATE VIEW IF NOT EXISTS scopes {cluster} AS
SELECT scope, eras,
       arrayFold((a, e) -> if(e.closed > -9223372036854775808, e.closed, a), eras, toInt64(-9223372036854775808)) AS closed
FROM (
  SELECT scope, JSONExtract(counts, 'eras', 'Array(Tuple(rules UInt32, starts Int64, closed Int64, top Int64))') AS eras
  FROM facts FINAL
  WHERE kind = 'scope' AND at = 0
);

-- Counts of a dependency from one time up to another, not included, by originator and
-- by peer. resolution is one of tick, ten_seconds, minute and hour. Both families count
-- every arrival once.
CREATE VIEW IF NOT EXISTS figures {cluster} AS
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

-- Questions stored by themselves that came last from one time up to another.
CREATE VIEW IF NOT EXISTS questions {cluster} AS
SELECT hex(key_hash) AS key_hash, scope, dependency, route, originator, peers, arrivals,
       fromUnixTimestamp64Nano(first, 'UTC') AS first_arrival, fromUnixTimestamp64Nano(last, 'UTC') AS last_arrival
FROM facts FINAL
PREWHERE kind = 'question' AND at >= toUnixTimestamp({from:DateTime}) AND at < toUnixTimestamp({to:DateTime}) AND dependency = {dependency:String};
