/** `npm run migrations`: writes the module that contains the migrations of the audit database. */
import { writeFileSync } from 'node:fs'
import { GENERATED, migrationsModule } from './migrations/embed.ts'

writeFileSync(GENERATED, migrationsModule())
