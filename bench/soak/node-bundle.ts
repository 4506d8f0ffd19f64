/** Bundles the gateway of the soak on Node. The source would use the memory of a compiler in each thread. */
import { join } from 'node:path'
import { build } from 'esbuild'
import { policyImports } from '../../dev/start/policy-paths.ts'
import { ROOT } from '../../dev/start/settings.ts'

const DIRECTORY = join(ROOT, '.wrangler', 'soak-node')
/** The program that {@link bundleForNode} writes. */
export const NODE_PROCESS = join(DIRECTORY, 'soak', 'node-process.js')

/** Writes the program, and the thread of the audit trail where the package has it. */
export async function bundleForNode(): Promise<void> {
  const own = Object.entries(policyImports()).filter(([name]) => /^portcullis\b/.test(name))
  await build({
    entryPoints: {
      'soak/node-process': join(import.meta.dirname, 'node-process.ts'),
      'node/audit-thread': join(ROOT, 'src', 'runtimes', 'node', 'audit', 'thread.ts'),
    },
    outdir: DIRECTORY,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    packages: 'external',
    alias: Object.fromEntries(own),
    logLevel: 'warning',
  })
}
