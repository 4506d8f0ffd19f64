/** What is measured: the pipeline, one stage more each time. */

/**
 * What a layer's requests run through. Each holds all stages before it; `full` is the gateway. The
 * one exception is `authenticate-cold`: it verifies without the token cache, those after it with it.
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

/** A stage, and what it is called. */
export interface Layer {
  /** For `--only`, and in results. */
  readonly id: string
  /** In tables. */
  readonly title: string
  readonly stage: Stage
}

/** In the order of the pipeline; the first is what every other one is compared with. */
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

/** The one with this id. Throws a `TypeError` where there is none. */
export function layerOf(id: Layer['id']): Layer {
  const layer = LAYERS.find((known) => known.id === id)
  if (layer === undefined) throw new TypeError(`there is no layer "${id}"`)
  return layer
}

export const BASELINE = 'passthrough'

/** Whether requests of `stage` pass `part` on their way. */
export function includes(stage: Stage, part: Stage): boolean {
  return STAGES.indexOf(part) <= STAGES.indexOf(stage)
}
