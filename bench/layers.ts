/** What is measured: the pipeline, one stage more each time. */

/** What a layer's requests run through. Each holds all stages before it; `full` is the gateway. */
export const STAGES = [
  'passthrough',
  'hygiene',
  'authenticate',
  'admit',
  'authorize',
  'validate',
  'full',
] as const
export type Stage = (typeof STAGES)[number]

/** A stage, and the tokens that its requests carry. */
export interface Layer {
  /** For `--only`, and in results. */
  readonly id: string
  /** In tables. */
  readonly title: string
  readonly stage: Stage
  /** `few`: all of them fit the token cache. `many`: none is still in it when it comes again. */
  readonly tokens: 'few' | 'many'
}

/** In the order of the pipeline; the first is what every other one is compared with. */
export const LAYERS: readonly Layer[] = [
  { id: 'passthrough', title: 'passthrough', stage: 'passthrough', tokens: 'few' },
  { id: 'hygiene', title: '+ hygiene', stage: 'hygiene', tokens: 'few' },
  { id: 'auth-cold', title: '+ auth, cold', stage: 'authenticate', tokens: 'many' },
  { id: 'auth-cached', title: '+ auth, cached', stage: 'authenticate', tokens: 'few' },
  { id: 'admit', title: '+ admit', stage: 'admit', tokens: 'few' },
  { id: 'authorize', title: '+ authorize', stage: 'authorize', tokens: 'few' },
  { id: 'validate', title: '+ validate', stage: 'validate', tokens: 'few' },
  { id: 'full', title: 'full', stage: 'full', tokens: 'few' },
]

export const BASELINE = 'passthrough'

/** Whether requests of `stage` pass `part` on their way. */
export function includes(stage: Stage, part: Stage): boolean {
  return STAGES.indexOf(part) <= STAGES.indexOf(stage)
}
