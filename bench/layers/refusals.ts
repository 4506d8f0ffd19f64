/** Requests that the pipeline refuses: each layer is checked with them, and `full` is measured. */
import { bearing, problem, type Question } from '../load/questions.ts'
import type { Contestant } from '../measure/rounds.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import type { Target } from '../stack/gateway.ts'
import { forged } from '../tokens/operations.ts'
import { includes, layerOf, type Stage } from './layers.ts'

export interface Refusal {
  readonly id: string
  readonly title: string
  readonly by: Stage
  readonly question: Question
}

/** Returns the refusals in the order of the pipeline. */
export function refusalsOf({
  writers: [good = ''],
  powerless,
}: Pick<BenchTokens, 'writers' | 'powerless'>): readonly Refusal[] {
  return [
    {
      id: 'ambiguous-path',
      title: 'an ambiguous path',
      by: 'hygiene',
      question: problem('ambiguous_path', 400, { path: '/orders%2f1', headers: bearing(good) }),
    },
    {
      id: 'no-token',
      title: 'no token',
      by: 'authenticate',
      question: problem('missing_token', 401),
    },
    {
      id: 'forged-token',
      title: 'a forged token',
      by: 'authenticate',
      question: problem('invalid_token', 401, { headers: bearing(forged(good)) }),
    },
    {
      id: 'no-permission',
      title: 'a caller without the permission',
      by: 'authorize',
      question: problem('insufficient_permission', 403, { headers: bearing(powerless) }),
    },
    {
      id: 'bad-query',
      title: 'a bad query',
      by: 'validate',
      question: problem('invalid_input', 422, {
        path: '/orders?limit=0',
        headers: bearing(good),
      }),
    },
  ]
}

/** Reports whether the gateway refuses without a call. Redis is called from `admit` on. */
export const isLocal = ({ by }: Pick<Refusal, 'by'>): boolean => !includes(by, 'admit')

/** Returns a refusal by the full pipeline as a contestant. */
export function refusalContestant(
  target: Target,
  { id, title, by, question }: Refusal,
): Contestant {
  const layer = layerOf('full')
  return {
    id,
    title,
    pid: target.pidOf(layer),
    url: target.urlOf(layer),
    questions: [question],
    expected: { origin: 0, redis: target.countsCalls && !isLocal({ by }) ? 1 : 0 },
  }
}
