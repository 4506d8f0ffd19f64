/** The project of a user that depends on this package: its Workers, its policy and its packages. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parse, TomlError } from 'smol-toml'
import type { Policy } from '../../src/policy/policy.ts'
import { appRequests, demoOf, generalRequests, requestsOf } from './examples.ts'
import { MAIN_CONFIG, missingConfig, POLICY_FILE } from './main-config.ts'
import type { PolicyFeatures, Project } from './project.ts'

const AUDIT_CONFIG = 'workers/audit.toml'
/** In the directory of the instance. */
const BUNDLED_POLICY = 'policy.mjs'
/** Of the package, in a project. */
export const TOKEN_COMMAND = 'npx portcullis token'
const NO_FEATURES: PolicyFeatures = {
  operators: false,
  authorizationServer: false,
  console: false,
  openapi: false,
}
/** The policy cannot be read: the examples name no page that may be missing. */
const LIKELY_FEATURES: PolicyFeatures = {
  ...NO_FEATURES,
  operators: true,
  authorizationServer: true,
}

/** Returns the features of a policy. */
export function featuresIn({
  features,
  issuers,
}: Pick<Policy, 'features' | 'issuers'>): PolicyFeatures {
  const has = (name: keyof PolicyFeatures) => features.some((feature) => feature.name === name)
  return {
    operators: has('operators'),
    authorizationServer: has('authorizationServer'),
    console: has('console'),
    openapi: has('openapi'),
    ...(issuers !== undefined && { issuers: JSON.stringify(issuers) }),
  }
}

interface WorkerConfig {
  readonly vars?: Readonly<Record<string, unknown>>
}

/**
 * Reads the project in the folder `root`. Throws an `Error` if it has no `wrangler.toml`, or does
 * not have wrangler.
 */
export function openProject(root: string): Project {
  const missing = missingConfig(root)
  if (missing !== undefined) throw new Error(missing)
  const wrangler = wranglerOf(root)
  const hasAudit = existsSync(join(root, AUDIT_CONFIG))
  const policyFile = join(root, POLICY_FILE)
  const kind = existsSync(policyFile) ? 'gateway' : 'app'
  let policy: Policy | undefined

  return {
    root,
    wrangler,
    kind,
    configs: hasAudit ? [MAIN_CONFIG, AUDIT_CONFIG] : [MAIN_CONFIG],
    migrations: undefined,
    demoOrigin: undefined,
    vars: variablesIn(root),
    async featuresOf(_policyFile, directory) {
      if (kind === 'app') return NO_FEATURES
      policy = await policyIn(policyFile, root, wrangler, directory)
      return policy === undefined ? LIKELY_FEATURES : featuresIn(policy)
    },
    policyArguments: undefined,
    checkModel: async () => {},
    tokenCommand: TOKEN_COMMAND,
    async demo({ url, features }) {
      const requests =
        kind === 'app'
          ? appRequests(url)
          : policy === undefined
            ? generalRequests(url)
            : requestsOf(policy, url)
      return demoOf(url, requests, TOKEN_COMMAND, features)
    },
  }
}

/** Returns the path of the project's own wrangler. */
function wranglerOf(root: string): string {
  try {
    const manifest = createRequire(join(root, 'package.json')).resolve('wrangler/package.json')
    return join(dirname(manifest), 'bin', 'wrangler.js')
  } catch {
    throw new Error(
      `wrangler is not installed in ${root}; run \`npm install\`, or first \`npm install --save-dev wrangler\``,
    )
  }
}

/** Returns the variables with text. wrangler passes the others to the Worker itself. */
function variablesIn(root: string): Readonly<Record<string, string>> {
  const { vars = {} } = configIn(root)
  const texts = Object.entries(vars).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return Object.fromEntries(texts)
}

function configIn(root: string): WorkerConfig {
  try {
    return parse(readFileSync(join(root, MAIN_CONFIG), 'utf8')) as WorkerConfig
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [problem] = error.message.split('\n')
    throw new Error(`${MAIN_CONFIG}:${error.line}:${error.column}: ${problem}`)
  }
}

/**
 * Loads the policy into this process, bundled by wrangler's own bundler. Returns undefined if that
 * is not possible.
 */
async function policyIn(
  file: string,
  root: string,
  wrangler: string,
  directory: string,
): Promise<Policy | undefined> {
  const outfile = join(directory, BUNDLED_POLICY)
  try {
    const { build } = createRequire(wrangler)('esbuild') as typeof import('esbuild')
    await build({
      entryPoints: [file],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      absWorkingDir: root,
      logLevel: 'silent',
    })
    const module = (await import(pathToFileURL(outfile).href)) as { readonly default?: Policy }
    return module.default
  } catch {
    return undefined
  }
}
