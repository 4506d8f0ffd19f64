-- Blocks of the chain: many events in one row. A chain has rows of audit_events, blocks, or both.
-- terms is a Bloom filter of what the events are searched by, ids has 16 bytes for each event, and
-- events is their text, compressed (deflate, RFC 1951).
CREATE TABLE IF NOT EXISTS audit_blocks (
  first_seq INTEGER NOT NULL PRIMARY KEY,
  last_seq INTEGER NOT NULL,
  min_ms INTEGER NOT NULL,
  max_ms INTEGER NOT NULL,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  terms BLOB NOT NULL,
  ids BLOB NOT NULL,
  events BLOB NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS audit_blocks_by_time ON audit_blocks (max_ms, first_seq, min_ms);

-- Requests with an API key, counted in each block.
CREATE TABLE IF NOT EXISTS audit_usage (
  api_key TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  min_ms INTEGER NOT NULL,
  max_ms INTEGER NOT NULL,
  day INTEGER NOT NULL,
  decision TEXT NOT NULL,
  reason TEXT NOT NULL,
  method TEXT NOT NULL,
  route TEXT,
  host TEXT,
  requests INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS audit_usage_by_api_key ON audit_usage (api_key, max_ms);
CREATE INDEX IF NOT EXISTS audit_usage_by_seq ON audit_usage (first_seq);

-- Progress of an erasure in blocks: the first event of the last block, and the number of erased events.
ALTER TABLE audit_erasures ADD COLUMN block_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit_erasures ADD COLUMN block_rows INTEGER NOT NULL DEFAULT 0;
