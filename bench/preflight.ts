/** Checks before the measurement that each layer does what its name says. */
import { ORIGIN_BODY } from './backends.ts'
import { includes, type Layer, type Stage } from './layers.ts'
import { headersOf } from './order-requests.ts'
import type { Target } from './target.ts'
import { forged } from './token-costs/forged.ts'
import type { BenchTokens } from './tokens.ts'

interface Probe {
  readonly what: string
  readonly token: string
  readonly path: string
  /** The stage that must refuse it. Stages before it admit it. */
  readonly refusedBy: Stage | undefined
  readonly status: number
}

const GOOD_PATH = '/orders?limit=20'

function probesOf({ writers, powerless }: BenchTokens): readonly Probe[] {
  const [good = ''] = writers
  return [
    { what: 'a good request', token: good, path: GOOD_PATH, refusedBy: undefined, status: 200 },
    {
      what: 'a forged token',
      token: forged(good),
      path: GOOD_PATH,
      refusedBy: 'authenticate',
      status: 401,
    },
    {
      what: 'a caller without a role',
      token: powerless,
      path: GOOD_PATH,
      refusedBy: 'authorize',
      status: 403,
    },
    {
      what: 'a bad query',
      token: good,
      path: '/orders?limit=0',
      refusedBy: 'validate',
      status: 422,
    },
  ]
}

/** Throws an `Error` of one line if a layer responds differently from its stages. */
export async function preflight(
  target: Target,
  layers: readonly Layer[],
  tokens: BenchTokens,
): Promise<void> {
  for (const layer of layers) {
    for (const { what, token, path, refusedBy, status } of probesOf(tokens)) {
      const expected = refusedBy === undefined || includes(layer.stage, refusedBy) ? status : 200
      const response = await fetch(target.urlOf(layer) + path, {
        headers: headersOf(token, 'read'),
      })
      const body = await response.text()
      const passed = expected !== 200 || body === ORIGIN_BODY
      const limited = response.headers.has('RateLimit') === includes(layer.stage, 'admit')
      if (response.status !== expected || !passed || (expected === 200 && !limited))
        throw new Error(
          `${layer.title} answers ${what} with ${response.status} ${body.slice(0, 200)}`,
        )
    }
  }
}
