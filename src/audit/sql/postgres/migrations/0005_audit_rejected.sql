-- The seen and the expected value of the check that refused a token: a JSON object.
ALTER TABLE audit_events ADD COLUMN rejected TEXT COLLATE "C";
