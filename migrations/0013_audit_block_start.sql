-- The begin of the earliest request of a block, in milliseconds since the epoch. Null for blocks of before.
-- A query by request id reads the blocks around the time that the id contains.
ALTER TABLE audit_blocks ADD COLUMN start_ms INTEGER;

DROP INDEX IF EXISTS audit_blocks_by_time;
CREATE INDEX IF NOT EXISTS audit_blocks_by_start
  ON audit_blocks (max_ms, first_seq, min_ms, start_ms);
