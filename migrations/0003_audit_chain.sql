-- Position of each event in the hash chain. Null for events that are older than the chain.
ALTER TABLE audit_events ADD COLUMN partition TEXT;
ALTER TABLE audit_events ADD COLUMN seq INTEGER;
ALTER TABLE audit_events ADD COLUMN previous_hash TEXT;
ALTER TABLE audit_events ADD COLUMN hash TEXT;

-- The index is unique so that a chain cannot fork.
CREATE UNIQUE INDEX IF NOT EXISTS audit_events_by_seq ON audit_events (partition, seq);

-- The last row of each chain, and the last row that a checkpoint covers.
CREATE TABLE IF NOT EXISTS audit_heads (
  partition TEXT PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  sealed_seq INTEGER NOT NULL,
  sealed_ms INTEGER NOT NULL
) STRICT;

-- Checkpoints: the hash of a chain at a row, signed if the audit Worker has a key.
CREATE TABLE IF NOT EXISTS audit_checkpoints (
  partition TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  hash TEXT NOT NULL,
  time_ms INTEGER NOT NULL,
  signature TEXT
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS audit_checkpoints_by_seq
  ON audit_checkpoints (partition, seq, kind);
