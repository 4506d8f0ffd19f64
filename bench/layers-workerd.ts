/** Runs the layers under `workerd serve`: one process, an isolate for each. */
import type { Backends } from './backends.ts'
import type { Bundle } from './bundle.ts'
import type { Layer } from './layers.ts'
import { gatewayVariables, type Target } from './target.ts'
import { startWorkerd, type Workerd } from './workerd.ts'

export interface LayersOptions {
  readonly bundle: Bundle
  readonly backends: Backends
  readonly signingKeys: string
  readonly layers: readonly Layer[]
  /** Directory for the configuration. */
  readonly directory: string
  /** Opens the inspector, which takes CPU time itself. Default false. */
  readonly inspect?: boolean
}

/** Starts the layers. The isolate of a layer is the service with the layer's id. */
export async function startLayers(
  options: LayersOptions,
): Promise<Target & Pick<Workerd, 'inspector'>> {
  const { backends, signingKeys, layers } = options
  const workerd = await startWorkerd({
    ...options,
    variables: gatewayVariables(backends, signingKeys),
    names: layers.map(({ id }) => id),
    queueAddress: new URL(backends.originUrl).host,
  })
  const { pid, inspector, close } = workerd
  const urlOf: Target['urlOf'] = ({ id, stage }) => `${workerd.originOf(id)}/${stage}`
  return { urlOf, pid, inspector, close }
}
