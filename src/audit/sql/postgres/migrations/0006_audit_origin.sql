-- The host pattern of the route, and the origin that the request was for. Null without `origins()`.
ALTER TABLE audit_events ADD COLUMN host TEXT COLLATE "C";
ALTER TABLE audit_events ADD COLUMN origin TEXT COLLATE "C";
