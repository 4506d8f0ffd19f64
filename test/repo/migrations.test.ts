import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GENERATED, migrationsModule } from '../../dev/migrations/embed.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'

test('the audit Worker contains the current migrations: `npm run migrations` changes nothing', () => {
  expect(readFileSync(GENERATED, 'utf8'), 'run npm run migrations').toBe(migrationsModule())
  expect(MIGRATIONS.map(({ name }) => name)).toContain('0001_audit_events.sql')
})
