/** Computes what one stage adds to the stages before it. */
import type { PublishedId } from './published.ts'
import { median, rounded } from './statistics.ts'

const DIGITS = 3

/** One layer compared with another. The difference is the cost of a stage. */
export interface Step {
  /** Id in figures. */
  readonly id: string
  readonly title: string
  /** Ids of the two layers. */
  readonly of: string
  readonly over: string
  readonly beside?: PublishedId
}

/** Steps in the order of the pipeline. Together they lead from passthrough to the full pipeline. */
export const STEPS: readonly Step[] = [
  { id: 'hygiene', title: 'hygiene, our own proxy', of: 'hygiene', over: 'passthrough' },
  {
    ...{ id: 'auth', title: 'authentication, token cached', of: 'auth-cached', over: 'hygiene' },
    beside: 'spacetime-auth',
  },
  {
    ...{ id: 'limits', title: 'revocation, bans, limits', of: 'admit', over: 'auth-cached' },
    beside: 'spacetime-limits',
  },
  {
    ...{ id: 'rbac', title: 'roles and permissions', of: 'authorize', over: 'admit' },
    beside: 'spacetime-rbac',
  },
  {
    ...{ id: 'validation', title: 'validation', of: 'validate', over: 'authorize' },
    beside: 'spacetime-validation',
  },
  { id: 'audit', title: 'audit', of: 'audit', over: 'validate', beside: 'spacetime-audit' },
  { id: 'rest', title: 'the rest of the gateway', of: 'full', over: 'audit' },
]

/**
 * An additional step that is not part of the sum: real clients do not send a new token each time.
 */
export const COLD_STEP: Step = {
  ...{ id: 'auth-cold', title: 'authentication, token new', of: 'auth-cold', over: 'hygiene' },
}

/** The whole gateway compared with the bare proxy. */
export const FULL_STEP: Step = {
  ...{ id: 'full', title: 'the full pipeline', of: 'full', over: 'passthrough' },
}

/** A layer and its rounds. */
export interface Measured<Key extends string> {
  readonly id: string
  readonly rounds: readonly { readonly [Name in Key]: number }[]
}

/**
 * Returns the median of the differences between neighbouring rounds. Returns undefined if one of
 * the layers was not measured. The result may be negative if the step costs less than the noise.
 */
export function addedBy<Key extends string>(
  { of, over }: Step,
  layers: readonly Measured<Key>[],
  key: Key,
): number | undefined {
  const upper = layers.find(({ id }) => id === of)
  const lower = layers.find(({ id }) => id === over)
  if (upper === undefined || lower === undefined) return undefined
  const differences = upper.rounds.flatMap((round, index) => {
    const beneath = lower.rounds[index]
    return beneath === undefined ? [] : [round[key] - beneath[key]]
  })
  return rounded(median(differences), DIGITS)
}
