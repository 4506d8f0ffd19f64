/** Both gateways: bundled from their revisions and served side by side, each by its own process. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import type { Backends } from '../backends.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from '../bundle.ts'
import type { Layer } from '../layers.ts'
import { gatewayVariables, type Target } from '../target.ts'
import { startWorkerd } from '../workerd.ts'
import { BURN_PATH } from './burn-path.ts'
import { checkOut, type Revision } from './revision.ts'

export const SIDES = ['base', 'head'] as const
export type SideName = (typeof SIDES)[number]

export interface Side {
  readonly layer: Layer
  readonly target: Target
  /** Makes each request compute in vain for so many rounds before it is served. */
  burn(rounds: number): Promise<void>
}

export interface SideOptions {
  readonly backends: Backends
  readonly signingKeys: string
  /** Scratch below this checkout. */
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
}

/** Checks a revision out, bundles its gateway and serves it until `shutdown`. */
export async function startSide(
  name: SideName,
  revision: Revision,
  { backends, signingKeys, directory: parent, shutdown }: SideOptions,
): Promise<Side> {
  const directory = join(parent, name)
  mkdirSync(directory)
  const tree = await checkOut(revision, join(directory, 'tree'), shutdown)
  const bundling = bundleOf(tree, directory)
  // What is broken off would go on writing where everything is removed.
  shutdown.defer(async () => void (await Promise.allSettled([bundling])))
  const bundle = await bundling
  shutdown.signal.throwIfAborted()
  const workerd = await startWorkerd({
    ...{ bundle, directory },
    variables: gatewayVariables(backends, signingKeys),
    names: [name],
    queueAddress: new URL(backends.originUrl).host,
  })
  shutdown.defer(workerd.close)
  const origin = workerd.originOf(name)
  return {
    layer: { id: name, title: `${name.toUpperCase()} ${revision.name}`, stage: 'full' },
    target: { urlOf: () => origin, pid: workerd.pid, close: workerd.close },
    async burn(rounds) {
      const answer = await (await fetch(`${origin}${BURN_PATH}${rounds}`)).text()
      if (answer !== `${rounds}`) throw new Error(`${name} cannot be slowed down`)
    },
  }
}

/** The entry point is this checkout's, and all that it serves that revision's. */
async function bundleOf(tree: string, directory: string): Promise<Bundle> {
  const from = (...path: readonly string[]) => JSON.stringify(join(...path))
  writeFileSync(
    join(directory, 'compared.ts'),
    [
      `import policy from ${from(tree, 'portcullis.config.ts')}`,
      `import * as revision from ${from(tree, 'src', 'index.ts')}`,
      `import { comparedWorker } from ${from(ROOT, 'bench', 'workers', 'compared.ts')}`,
      // Earlier revisions compose their services from the environment alone.
      'const { createGateway, composeServices = revision.createServices } = revision',
      'export default comparedWorker({ createGateway, composeServices, policy })',
    ].join('\n'),
  )
  const config = join(directory, 'compared.toml')
  const layers = readFileSync(join(ROOT, LAYERS_CONFIG), 'utf8')
  writeFileSync(config, layers.replace('main = "layers.ts"', 'main = "compared.ts"'))
  return bundleWorker(relative(ROOT, config), directory)
}
