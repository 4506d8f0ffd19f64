-- Blocks of the chain: many events in one row. A chain has rows of audit_events, blocks, or both.
-- terms is a Bloom filter of what the events are searched by, ids has 16 bytes for each event, and
-- events is their text, compressed (deflate, RFC 1951).
CREATE TABLE IF NOT EXISTS audit_blocks (
  first_seq BIGINT NOT NULL PRIMARY KEY,
  last_seq BIGINT NOT NULL,
  min_ms BIGINT NOT NULL,
  max_ms BIGINT NOT NULL,
  previous_hash TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  terms BYTEA NOT NULL,
  ids BYTEA NOT NULL,
  events BYTEA NOT NULL
);

CREATE INDEX IF NOT EXISTS audit_blocks_by_time ON audit_blocks (max_ms, first_seq, min_ms);

-- Requests with an API key, counted in each block.
CREATE TABLE IF NOT EXISTS audit_usage (
  api_key TEXT COLLATE "C" NOT NULL,
  first_seq BIGINT NOT NULL,
  min_ms BIGINT NOT NULL,
  max_ms BIGINT NOT NULL,
  day BIGINT NOT NULL,
  decision TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  route TEXT COLLATE "C",
  host TEXT COLLATE "C",
  requests BIGINT NOT NULL
);

CREATE INDEX IF NOT EXISTS audit_usage_by_api_key ON audit_usage (api_key, max_ms);
CREATE INDEX IF NOT EXISTS audit_usage_by_seq ON audit_usage (first_seq);

-- Progress of an erasure in blocks: the first event of the last block, and the number of erased events.
ALTER TABLE audit_erasures ADD COLUMN block_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit_erasures ADD COLUMN block_rows BIGINT NOT NULL DEFAULT 0;
