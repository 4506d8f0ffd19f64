-- The change that an operator made: JSON with action and target. Null for all other events.
ALTER TABLE audit_events ADD COLUMN change TEXT COLLATE "C";
