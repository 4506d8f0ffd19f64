-- Do not use semicolons inside statements or comments: the audit Worker splits this file at them.
-- The audit trail. The id makes delivery idempotent. Pages are ordered by (time_ms, id).
CREATE TABLE IF NOT EXISTS audit_events (
  id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  time_ms BIGINT NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  trace_id TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C",
  subject TEXT COLLATE "C",
  client TEXT COLLATE "C",
  tenant TEXT COLLATE "C",
  token_id_hash TEXT COLLATE "C",
  method TEXT COLLATE "C" NOT NULL,
  route TEXT COLLATE "C",
  decision TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  status BIGINT NOT NULL,
  limits TEXT COLLATE "C" NOT NULL,
  durations_ms TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  colo TEXT COLLATE "C",
  lost BIGINT
);

CREATE INDEX IF NOT EXISTS audit_events_by_time ON audit_events (time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_subject ON audit_events (subject, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_decision ON audit_events (decision, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_route ON audit_events (route, time_ms, id);
CREATE INDEX IF NOT EXISTS audit_events_by_reason ON audit_events (reason, time_ms, id);

-- Messages that are not audit events, unchanged.
CREATE TABLE IF NOT EXISTS dead_letters (
  message_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  received_ms BIGINT NOT NULL,
  body TEXT COLLATE "C" NOT NULL
);

CREATE INDEX IF NOT EXISTS dead_letters_by_time ON dead_letters (received_ms);
