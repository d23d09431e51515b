-- What does not belong to a write. The states of sources, which alone know what is in
-- them; of one name the highest turn stays.
CREATE TABLE IF NOT EXISTS positions {cluster} (
  name  String,
  state String CODEC(ZSTD(1)),
  turn  UInt64
)
ENGINE = {replicated}ReplacingMergeTree(turn)
ORDER BY name;

-- Versions of rules that were asked for. One is taken by whoever alone asked for it.
CREATE TABLE IF NOT EXISTS takings {cluster} (
  scope String,
  rules UInt32,
  token String
)
ENGINE = {replicated}MergeTree
ORDER BY (scope, rules);

-- One row, written to see whether writing is possible.
CREATE TABLE IF NOT EXISTS checks {cluster} (
  id UInt8,
  at DateTime64(3) DEFAULT now64(3)
)
ENGINE = {replicated}ReplacingMergeTree(at)
ORDER BY id;
