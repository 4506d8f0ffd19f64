/** Finds the opt-in features that a policy imports and `npm start` uses. */
import { join } from 'node:path'
import { build } from 'esbuild'
import { policyTsconfig } from './policy-paths.ts'
import type { PolicyFeatures } from './project.ts'
import { ROOT } from './settings.ts'

const DEFAULT_POLICY = join(ROOT, 'portcullis.config.ts')

/**
 * Returns the features that the policy file and its imports import. A file that does not compile
 * counts as one with all of them: wrangler reports its mistake.
 */
export async function featuresOf(policyFile = DEFAULT_POLICY): Promise<PolicyFeatures> {
  const { inputs } = await build({
    entryPoints: [policyFile],
    bundle: true,
    write: false,
    metafile: true,
    absWorkingDir: ROOT,
    format: 'esm',
    logLevel: 'silent',
    tsconfigRaw: policyTsconfig(policyFile),
  }).then(
    ({ metafile }) => metafile,
    () => ({ inputs: undefined }),
  )
  const imports = (module: string) =>
    inputs === undefined || Object.hasOwn(inputs, `src/features/${module}/index.ts`)
  return {
    operators: imports('operators'),
    authorizationServer: imports('authorization-server'),
    console: imports('console'),
    openapi: imports('openapi'),
  }
}
