-- Reasons for which rules in observe mode would have refused the request: a JSON list.
ALTER TABLE audit_events ADD COLUMN observed TEXT;

-- The hash format (null for older rows), and the salts and commitments that allow an erasure.
ALTER TABLE audit_events ADD COLUMN v INTEGER;
ALTER TABLE audit_events ADD COLUMN salt TEXT;
ALTER TABLE audit_events ADD COLUMN commitment TEXT;
ALTER TABLE audit_events ADD COLUMN change_salt TEXT;
ALTER TABLE audit_events ADD COLUMN change_commitment TEXT;
ALTER TABLE audit_events ADD COLUMN erasure TEXT;

CREATE INDEX IF NOT EXISTS audit_events_by_erasure
  ON audit_events (erasure) WHERE erasure IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_events_by_change
  ON audit_events (time_ms) WHERE change IS NOT NULL;

-- Erasures and their progress. The subject is removed when an erasure is complete.
CREATE TABLE IF NOT EXISTS audit_erasures (
  id TEXT PRIMARY KEY NOT NULL,
  end_id TEXT NOT NULL,
  ordered_ms INTEGER NOT NULL,
  issuer TEXT,
  subject TEXT,
  salt TEXT,
  caller_digest TEXT,
  name_digest TEXT,
  first_seq INTEGER,
  exported_seq INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  done_ms INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS audit_erasures_by_age ON audit_erasures (ordered_ms);

-- The rows of each exported object. The index is unique so that no row is in two objects.
CREATE TABLE IF NOT EXISTS audit_exports (
  partition TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  planned_ms INTEGER NOT NULL,
  done_ms INTEGER
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS audit_exports_by_seq ON audit_exports (partition, first_seq);
