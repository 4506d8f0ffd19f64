-- What an operator changed: JSON, action and target. Null for every other decision.
ALTER TABLE audit_events ADD COLUMN change TEXT;
