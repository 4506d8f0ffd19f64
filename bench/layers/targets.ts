/** Starts the layers under one of the runtimes. */
import { bareOnNode, oursOnNode } from '../node/peers.ts'
import type { Peer } from '../peers/peer.ts'
import { startAll } from '../peers/start.ts'
import type { Runtime } from '../runtimes.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import { type Ground, type StartContext, startLayers, type Target } from '../stack/gateway.ts'
import { startWranglerDev } from '../stack/wrangler-dev.ts'
import type { Layer, Stage } from './layers.ts'

/** On Node a layer is a process. The layers between these two exist only in the Worker. */
const ON_NODE: ReadonlyMap<Stage, Peer> = new Map([
  ['passthrough', bareOnNode],
  ['full', oursOnNode],
])

/** Returns those of `layers` that exist under `runtime`. */
export const layersUnder = (runtime: Runtime, layers: readonly Layer[]): readonly Layer[] =>
  runtime === 'node' ? layers.filter(({ stage }) => ON_NODE.has(stage)) : layers

export interface TargetOptions extends StartContext {
  readonly ground: Ground
  readonly tokens: BenchTokens
  /** From {@link layersUnder}. */
  readonly layers: readonly Layer[]
}

/** Starts `layers`, and closes them at shutdown. Throws an `Error` of one line if one fails. */
export async function startTarget(runtime: Runtime, options: TargetOptions): Promise<Target> {
  const { ground, layers, directory, shutdown } = options
  if (runtime === 'node') return startOnNode(options)
  const target =
    runtime === 'wrangler'
      ? await startWranglerDev(ground, directory)
      : await startLayers({ ...ground, layers, directory })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  return target
}

async function startOnNode({ ground, layers, ...entry }: TargetOptions): Promise<Target> {
  const peers = layers.flatMap(({ stage }) => ON_NODE.get(stage) ?? [])
  const { backends } = ground
  const { entrants } = await startAll({ ...entry, backends, peers })
  function runningOf({ id, stage }: Pick<Layer, 'id' | 'stage'>) {
    const entrant = entrants.find(({ peer }) => peer === ON_NODE.get(stage))
    if (entrant === undefined) throw new TypeError(`layer "${id}" does not exist on Node`)
    return entrant.running
  }
  return {
    urlOf: (layer) => runningOf(layer).url,
    pidOf: (layer) => runningOf(layer).pid,
    // Calls over RESP do not pass the REST server, which counts calls.
    countsCalls: false,
    async close() {
      for (const { running } of entrants) await running.close()
    },
  }
}
