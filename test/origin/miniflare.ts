/** Runs a Worker with a D1 database in real workerd, as `wrangler dev` does. */
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { bundle, COMPATIBILITY_DATE, COMPATIBILITY_FLAGS } from './workerd.ts'

interface MiniflareOptions {
  /** Path of the entry module. */
  readonly entry: string
  /** Text bindings. */
  readonly vars: Readonly<Record<string, string>>
  readonly port: number
  /** The name of the binding of the database. */
  readonly d1: string
  /** Where the database is stored. Default: it ends with the Worker. */
  readonly folder?: string | undefined
}

/** Bundles the entry and serves it; resolves once it answers. */
export async function startMiniflare({ entry, vars, port, d1, folder }: MiniflareOptions) {
  const contents = new TextDecoder().decode(await bundle(entry))
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({
      ...{ host: '127.0.0.1', port, cf: false },
      modules: [{ type: 'ESModule', path: 'worker.js', contents }],
      compatibilityDate: COMPATIBILITY_DATE,
      compatibilityFlags: COMPATIBILITY_FLAGS,
      bindings: { ...vars },
      d1Databases: [d1],
    }),
    ...(folder !== undefined && { resourcePersistencePath: folder }),
  })
  await miniflare.ready
  return { stop: () => miniflare.dispose() }
}
