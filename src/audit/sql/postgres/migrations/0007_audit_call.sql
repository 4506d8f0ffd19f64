-- The method and the name of a call of an MCP server: a JSON object.
ALTER TABLE audit_events ADD COLUMN call TEXT COLLATE "C";
