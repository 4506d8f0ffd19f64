/** The Markdown documents of the repository. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'

const IGNORED = new Set(['node_modules', '.git', '.wrangler', 'dist', 'cache', 'coverage'])

/** Every Markdown file of the repository, by path from the root. */
export const DOCUMENTS: readonly string[] = documentsBelow('').sort()

/** Documents with commands that a user runs, in the order of reading. */
export const GUIDES = [
  'README.md',
  'docs/your-api.md',
  'docs/configuration.md',
  'docs/tokens.md',
  'docs/relations.md',
  'docs/middleware.md',
  'docs/deploy.md',
  'docs/operate.md',
  'docs/audit.md',
  'docs/abuse.md',
] as const

export const readDocument = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

function documentsBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (IGNORED.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return documentsBelow(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}
