/** Layers as contestants, and the check of their stages. */
import { expectAnswer, ORDERS_PATH, orders, read } from '../load/questions.ts'
import type { Contestant } from '../measure/rounds.ts'
import type { RequestKind } from '../options.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import type { Target } from '../stack/gateway.ts'
import { includes, type Layer } from './layers.ts'
import { refusalsOf } from './refusals.ts'

export function layerContestant(
  target: Target,
  layer: Layer,
  { request, tokens }: { readonly request: RequestKind; readonly tokens: BenchTokens },
): Contestant {
  return {
    id: layer.id,
    title: layer.title,
    pid: target.pidOf(layer),
    url: target.urlOf(layer),
    questions: orders(request, tokens.writers),
    expected: {
      origin: 1,
      redis: target.countsCalls && includes(layer.stage, 'admit') ? 1 : 0,
      identified: includes(layer.stage, 'authenticate'),
      asserted: includes(layer.stage, 'full'),
    },
  }
}

/** Checks that each layer refuses exactly what its stages refuse. Throws for a wrong response. */
export async function preflight(
  target: Target,
  layers: readonly Layer[],
  tokens: BenchTokens,
): Promise<void> {
  const good = read(tokens.writers[0] ?? '')
  for (const layer of layers) {
    const url = target.urlOf(layer)
    await expectAnswer(url, good, `${layer.title}, a good request`)
    const { headers } = await fetch(url + ORDERS_PATH, { headers: good.headers })
    if (headers.has('RateLimit') !== includes(layer.stage, 'admit'))
      throw new Error(`${layer.title}: unexpected or missing RateLimit header`)
    for (const { title, by, question } of refusalsOf(tokens)) {
      const passed = { ...question, status: 200, answer: ORIGIN_BODY }
      const expected = includes(layer.stage, by) ? question : passed
      await expectAnswer(url, expected, `${layer.title}, ${title}`)
    }
  }
}
