-- Each event's place in a chain of hashes. Null for events from before there was one.
ALTER TABLE audit_events ADD COLUMN partition TEXT;
ALTER TABLE audit_events ADD COLUMN seq INTEGER;
ALTER TABLE audit_events ADD COLUMN previous_hash TEXT;
ALTER TABLE audit_events ADD COLUMN hash TEXT;

-- Unique, so that a chain cannot fork.
CREATE UNIQUE INDEX IF NOT EXISTS audit_events_by_seq ON audit_events (partition, seq);

-- Where each chain ends, and how far it is sealed.
CREATE TABLE IF NOT EXISTS audit_heads (
  partition TEXT PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  sealed_seq INTEGER NOT NULL,
  sealed_ms INTEGER NOT NULL
) STRICT;

-- What the chain was at some moments, signed where the audit Worker has a key.
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
