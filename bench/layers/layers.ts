/** The measured layers: the pipeline, with one more stage in each layer. */

/**
 * The last stage of a layer. Each layer contains all stages before it; `full` is the gateway. The
 * exception is `authenticate-cold`: it verifies without the token cache, later stages use the
 * cache.
 */
export const STAGES = [
  'passthrough',
  'hygiene',
  'authenticate',
  'authenticate-cold',
  'admit',
  'authorize',
  'validate',
  'audit',
  'full',
] as const
export type Stage = (typeof STAGES)[number]

export interface Layer {
  /** Id for `--only` and in results. */
  readonly id: string
  readonly title: string
  readonly stage: Stage
}

/** Layers in the order of the pipeline. All others are compared with the first. */
export const LAYERS: readonly Layer[] = [
  { id: 'passthrough', title: 'passthrough', stage: 'passthrough' },
  { id: 'hygiene', title: '+ hygiene', stage: 'hygiene' },
  { id: 'auth-cold', title: '+ auth, cold', stage: 'authenticate-cold' },
  { id: 'auth-cached', title: '+ auth, cached', stage: 'authenticate' },
  { id: 'admit', title: '+ admit', stage: 'admit' },
  { id: 'authorize', title: '+ authorize', stage: 'authorize' },
  { id: 'validate', title: '+ validate', stage: 'validate' },
  { id: 'audit', title: '+ audit', stage: 'audit' },
  { id: 'full', title: 'full', stage: 'full' },
]

/** Returns the layer with this id. Throws a `TypeError` if it does not exist. */
export function layerOf(id: Layer['id']): Layer {
  const layer = LAYERS.find((known) => known.id === id)
  if (layer === undefined) throw new TypeError(`unknown layer "${id}"`)
  return layer
}

export const BASELINE = 'passthrough'

/** Reports whether requests of `stage` pass `part`. */
export function includes(stage: Stage, part: Stage): boolean {
  return STAGES.indexOf(part) <= STAGES.indexOf(stage)
}
