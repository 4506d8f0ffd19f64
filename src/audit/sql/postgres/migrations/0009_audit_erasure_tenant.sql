-- The tenant whose events an erasure covers. Null: the events of all tenants.
ALTER TABLE audit_erasures ADD COLUMN tenant TEXT COLLATE "C";

-- `tenant` if an operator of that tenant has ordered the erasure. Null: the platform.
ALTER TABLE audit_erasures ADD COLUMN owner TEXT COLLATE "C";
