/** Layers as contestants, and the check that each does what its name says. */
import { expectAnswer, ORDERS_PATH, orders, problem, read } from '../load/questions.ts'
import type { Contestant, Expected } from '../measure/rounds.ts'
import type { RequestKind } from '../options.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import type { Target } from '../stack/gateway.ts'
import { forged } from '../tokens/operations.ts'
import { includes, type Layer, type Stage } from './layers.ts'

/** Returns the calls of a request that passes all stages of a layer. */
export function expectedOf(stage: Stage): Expected {
  return {
    origin: 1,
    redis: includes(stage, 'admit') ? 1 : 0,
    identified: includes(stage, 'authenticate'),
    asserted: includes(stage, 'full'),
  }
}

/** Returns a layer as a contestant. */
export function layerContestant(
  target: Target,
  layer: Layer,
  { request, tokens }: { readonly request: RequestKind; readonly tokens: BenchTokens },
): Contestant {
  return {
    id: layer.id,
    title: layer.title,
    pid: target.pid,
    url: target.urlOf(layer),
    questions: orders(request, tokens.writers),
    expected: expectedOf(layer.stage),
  }
}

/**
 * Checks before the measurement that each layer refuses exactly what its stages refuse. Throws an
 * `Error` of one line.
 */
export async function preflight(
  target: Target,
  layers: readonly Layer[],
  { writers: [good = ''], powerless }: BenchTokens,
): Promise<void> {
  const badQuery = { ...read(good), path: '/orders?limit=0' }
  const probes = [
    {
      what: 'a forged token',
      by: 'authenticate',
      question: read(forged(good)),
      code: 'invalid_token',
      status: 401,
    },
    {
      what: 'a caller without a role',
      by: 'authorize',
      question: read(powerless),
      code: 'insufficient_permission',
      status: 403,
    },
    { what: 'a bad query', by: 'validate', question: badQuery, code: 'invalid_input', status: 422 },
  ] as const
  for (const layer of layers) {
    const url = target.urlOf(layer)
    await expectAnswer(url, read(good), `${layer.title}, a good request`)
    const { headers } = await fetch(url + ORDERS_PATH, { headers: read(good).headers })
    if (headers.has('RateLimit') !== includes(layer.stage, 'admit'))
      throw new Error(`${layer.title}: unexpected or missing RateLimit header`)
    for (const { what, by, question, code, status } of probes) {
      const refused = problem(code, status, question)
      const expected = includes(layer.stage, by) ? refused : question
      await expectAnswer(url, expected, `${layer.title}, ${what}`)
    }
  }
}
