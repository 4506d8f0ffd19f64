-- What decided about the caller: roles, scopes, plan, and the object of a relation, as a JSON object.
ALTER TABLE audit_events ADD COLUMN grants TEXT COLLATE "C";
