import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MIGRATION_SETS, migrationsModule } from '../../dev/migrations/embed.ts'
import type { Migration } from '../../src/audit/sql/dialect.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'
import { POSTGRES_MIGRATIONS } from '../../src/audit/sql/postgres/migrations.generated.ts'

test.each(MIGRATION_SETS)('$name is current: `npm run migrations` changes nothing', (set) => {
  expect(readFileSync(set.generated, 'utf8'), 'run npm run migrations').toBe(migrationsModule(set))
})

/** Returns the tables, columns and indexes of each migration, without their types. */
const shape = (migrations: readonly Migration[]) =>
  migrations.map(({ name, sql }) => {
    const lines = sql.split('\n').filter((line) => !line.startsWith('--'))
    const words = /(?:(?:TABLE|INDEX|COLUMN|EXISTS|ON) [\w (,)]+|^ {2}\w+)/g
    return [name, lines.flatMap((line) => (line.match(words) ?? []).map(untyped))]
  })
const untyped = (text: string) => text.replace(/ (?:TEXT|INTEGER|BIGINT|BLOB|BYTEA)\b.*/, '')

test('SQLite and PostgreSQL get the same tables, columns and indexes', () => {
  expect(shape(POSTGRES_MIGRATIONS)).toEqual(shape(MIGRATIONS))
  expect(MIGRATIONS.map(({ name }) => name)).toContain('0001_audit_events.sql')
})
