/** Embeds the migrations of the audit database, which the audit Worker applies to a new database. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../start/settings.ts'

/** Path of the generated module. */
export const GENERATED = join(ROOT, 'src', 'audit', 'sql', 'migrations.generated.ts')

/** Returns the text of the generated module: the files of `migrations/` in their order. */
export function migrationsModule(): string {
  const files = globSync('migrations/*.sql', { cwd: ROOT }).sort()
  const entries = files.map((file) => {
    const sql = JSON.stringify(readFileSync(join(ROOT, file), 'utf8'))
    return `  { name: '${basename(file)}', sql: ${sql} },\n`
  })
  return [
    '/** Generated from `migrations/*.sql` by `npm run migrations`. Do not edit. */\n',
    "import type { Migration } from './schema.ts'\n\n",
    `export const MIGRATIONS: readonly Migration[] = [\n${entries.join('')}]\n`,
  ].join('')
}
