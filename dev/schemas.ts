/** `npm run schemas`: writes the JSON Schemas of the package, see `schemas/generate.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './root.ts'
import { FOLDER, generateSchemas } from './schemas/generate.ts'

mkdirSync(join(ROOT, FOLDER), { recursive: true })
for (const [name, text] of generateSchemas()) writeFileSync(join(ROOT, FOLDER, name), text)
