/** Embeds the migrations of the audit database, which the consumer applies to a new database. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../start/settings.ts'

const SQL = join(ROOT, 'src', 'audit', 'sql')

interface MigrationSet {
  /** The folder with a file for each migration. Both have the same names. */
  readonly folder: string
  /** Path of the generated module. */
  readonly generated: string
  readonly name: string
  readonly types: string
}

export const MIGRATION_SETS: readonly MigrationSet[] = [
  {
    folder: 'migrations',
    generated: join(SQL, 'migrations.generated.ts'),
    name: 'MIGRATIONS',
    types: './dialect.ts',
  },
  {
    folder: 'src/audit/sql/postgres/migrations',
    generated: join(SQL, 'postgres', 'migrations.generated.ts'),
    name: 'POSTGRES_MIGRATIONS',
    types: '../dialect.ts',
  },
]

/** Returns the text of the generated module: the files of the folder in their order. */
export function migrationsModule({ folder, name, types }: MigrationSet): string {
  const files = globSync(`${folder}/*.sql`, { cwd: ROOT }).sort()
  const entries = files.map((file) => {
    const sql = JSON.stringify(readFileSync(join(ROOT, file), 'utf8'))
    return `  { name: '${basename(file)}', sql: ${sql} },\n`
  })
  return [
    `/** Generated from \`${folder}/*.sql\` by \`npm run migrations\`. Do not edit. */\n`,
    `import type { Migration } from '${types}'\n\n`,
    `export const ${name}: readonly Migration[] = [\n${entries.join('')}]\n`,
  ].join('')
}
