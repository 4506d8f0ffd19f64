-- What features of the policy recorded, as a JSON object of texts.
ALTER TABLE audit_events ADD COLUMN fields TEXT COLLATE "C";
