-- Position of each event in the hash chain. Null for events that are older than the chain.
ALTER TABLE audit_events ADD COLUMN partition TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN seq BIGINT;
ALTER TABLE audit_events ADD COLUMN previous_hash TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN hash TEXT COLLATE "C";

-- The index is unique so that a chain cannot fork.
CREATE UNIQUE INDEX IF NOT EXISTS audit_events_by_seq ON audit_events (partition, seq);

-- The last row of each chain, and the last row that a checkpoint covers.
CREATE TABLE IF NOT EXISTS audit_heads (
  partition TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  sealed_seq BIGINT NOT NULL,
  sealed_ms BIGINT NOT NULL
);

-- Checkpoints: the hash of a chain at a row, signed if the audit Worker has a key.
CREATE TABLE IF NOT EXISTS audit_checkpoints (
  partition TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  time_ms BIGINT NOT NULL,
  signature TEXT COLLATE "C"
);

CREATE UNIQUE INDEX IF NOT EXISTS audit_checkpoints_by_seq
  ON audit_checkpoints (partition, seq, kind);
