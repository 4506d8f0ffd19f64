/** The Markdown documents of the repository. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'
import { type Block, blocksOf } from './blocks.ts'

const IGNORED = new Set(['node_modules', '.git', '.wrangler', 'dist', 'cache', 'coverage'])

/** Every Markdown file of the repository, by path from the root. */
export const DOCUMENTS: readonly string[] = documentsBelow('').sort()

/** Documents about the first steps, with commands that a user runs. */
export const FIRST_GUIDES = [
  'README.md',
  'docs/your-api.md',
  'docs/environment.md',
  'docs/middleware.md',
  'docs/deploy.md',
] as const

/** Documents about single features, with commands that a user runs. */
export const FEATURE_GUIDES = [
  'docs/tokens.md',
  'docs/api-keys.md',
  'docs/relations.md',
  'docs/origins.md',
  'docs/audit.md',
  'docs/abuse.md',
  'docs/policy-tools.md',
  'docs/authorization-server.md',
] as const

/** Documents about the operation of a gateway, with commands that a user runs. */
export const OPERATION_GUIDES = ['docs/operate.md', 'docs/node.md'] as const

/** All documents with commands that a user runs. */
export const GUIDES = [...FIRST_GUIDES, ...FEATURE_GUIDES, ...OPERATION_GUIDES] as const

/**
 * Documents whose commands continuous integration runs. `npm run test:long` runs those of all.
 */
export const USUAL_GUIDES = ['README.md'] as const

export type Guide = (typeof GUIDES)[number]

export const readDocument = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** The reference of the configuration, in its order. */
export const CONFIGURATION = [
  'docs/environment.md',
  'docs/issuers.md',
  'docs/policy.md',
  'docs/routes.md',
  'docs/limits.md',
] as const

/** Returns the pages of the configuration as one document. */
export const readConfiguration = (): string => CONFIGURATION.map(readDocument).join('\n')

/** A block of `docs/deploy.md`. `test/dev/start/deploy.slow.test.ts` runs it, and examines what it leaves. */
export const DRY_RUN = 'npm run deploy -- --dry-run'

/** Returns the blocks of commands that a user runs. */
export const commandsOf = (path: string): readonly Block[] =>
  blocksOf(readDocument(path)).filter(({ language }) => language === 'sh')

function documentsBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (IGNORED.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return documentsBelow(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}
