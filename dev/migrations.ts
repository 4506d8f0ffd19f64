/** `npm run migrations`: writes the modules that contain the migrations of the audit database. */
import { writeFileSync } from 'node:fs'
import { MIGRATION_SETS, migrationsModule } from './migrations/embed.ts'

for (const set of MIGRATION_SETS) writeFileSync(set.generated, migrationsModule(set))
