-- Decisions of an hour (UTC, such as 2026-11-20T12), counted by minute, decision, reason, route and status: JSON, as
-- src/audit/hour-counts.ts describes it. A summary of a long period reads these rows, and no events.
-- first_seq is the number of the first event that was counted here: earlier ones are of versions without counts.
CREATE TABLE IF NOT EXISTS audit_counts (
  hour TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  first_seq BIGINT NOT NULL,
  counts TEXT COLLATE "C" NOT NULL
);
