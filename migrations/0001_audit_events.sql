-- Do not use semicolons inside statements or comments: the audit Worker splits this file at them.
-- The audit trail. The id makes delivery idempotent. Pages are ordered by (time_ms, id).
CREATE TABLE IF NOT EXISTS audit_events (
  id TEXT PRIMARY KEY NOT NULL,
  time_ms INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  issuer TEXT,
  subject TEXT,
  client TEXT,
  tenant TEXT,
  token_id_hash TEXT,
  method TEXT NOT NULL,
  route TEXT,
  decision TEXT NOT NULL,
  reason TEXT NOT NULL,
  status INTEGER NOT NULL,
  limits TEXT NOT NULL,
  durations_ms TEXT NOT NULL,
  address TEXT NOT NULL,
  colo TEXT,
  lost INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS audit_events_by_time ON audit_events (time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_subject ON audit_events (subject, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_decision ON audit_events (decision, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_route ON audit_events (route, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_reason ON audit_events (reason, time_ms, id);

-- Messages that are not audit events, unchanged.
CREATE TABLE IF NOT EXISTS dead_letters (
  message_id TEXT PRIMARY KEY NOT NULL,
  received_ms INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS dead_letters_by_time ON dead_letters (received_ms);
