-- Progress of an erasure in the changes of rows: the time and the id of the last row that was read. Null: none.
ALTER TABLE audit_erasures ADD COLUMN change_ms INTEGER;
ALTER TABLE audit_erasures ADD COLUMN change_id TEXT;
