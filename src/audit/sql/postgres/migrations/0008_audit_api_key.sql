-- The id of the API key that the caller presented. Null for all other credentials.
ALTER TABLE audit_events ADD COLUMN api_key TEXT COLLATE "C";

-- Contains all columns that the usage of a key is computed from.
CREATE INDEX IF NOT EXISTS audit_events_by_api_key
  ON audit_events (api_key, time_ms, decision, reason) WHERE api_key IS NOT NULL;
