-- The steps that were run, and who runs some: a run says each statement before it
-- begins, and that it has ended.
CREATE TABLE IF NOT EXISTS migrations {cluster} (
  number UInt32,
  name   String,
  at     DateTime64(3) DEFAULT now64(3)
)
ENGINE = {replicated}ReplacingMergeTree(at)
ORDER BY (number, name);

CREATE TABLE IF NOT EXISTS migration_runs {cluster} (
  token String,
  ended UInt8,
  at    DateTime64(3) DEFAULT now64(3)
)
ENGINE = {replicated}MergeTree
ORDER BY at;
