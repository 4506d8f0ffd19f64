-- Reasons for which rules in observe mode would have refused the request: a JSON list.
ALTER TABLE audit_events ADD COLUMN observed TEXT COLLATE "C";

-- The hash format (null for older rows), and the salts and commitments that allow an erasure.
ALTER TABLE audit_events ADD COLUMN v BIGINT;
ALTER TABLE audit_events ADD COLUMN salt TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN commitment TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN change_salt TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN change_commitment TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN erasure TEXT COLLATE "C";

CREATE INDEX IF NOT EXISTS audit_events_by_erasure
  ON audit_events (erasure) WHERE erasure IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_events_by_change
  ON audit_events (time_ms) WHERE change IS NOT NULL;

-- Erasures and their progress. The subject is removed when an erasure is complete.
CREATE TABLE IF NOT EXISTS audit_erasures (
  id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  end_id TEXT COLLATE "C" NOT NULL,
  ordered_ms BIGINT NOT NULL,
  issuer TEXT COLLATE "C",
  subject TEXT COLLATE "C",
  salt TEXT COLLATE "C",
  caller_digest TEXT COLLATE "C",
  name_digest TEXT COLLATE "C",
  first_seq BIGINT,
  exported_seq BIGINT NOT NULL,
  rows BIGINT NOT NULL,
  done_ms BIGINT
);

CREATE INDEX IF NOT EXISTS audit_erasures_by_age ON audit_erasures (ordered_ms);

-- The rows of each exported object. The index is unique so that no row is in two objects.
CREATE TABLE IF NOT EXISTS audit_exports (
  partition TEXT COLLATE "C" NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  planned_ms BIGINT NOT NULL,
  done_ms BIGINT
);

CREATE UNIQUE INDEX IF NOT EXISTS audit_exports_by_seq ON audit_exports (partition, first_seq);
