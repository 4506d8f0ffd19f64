/** The operators' call that reads the state of the issuers' keys. */
import * as z from 'zod/mini'
import type { FeatureParts } from '../../gateway/feature.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { time } from '../../routes/admin/input.ts'
import { refuseTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'

export const issuersView = z.strictObject({
  issuers: z.array(
    z.strictObject({
      issuer: z.string(),
      keys: z
        .nullable(z.string())
        .check(describe('where its keys come from; null: the configuration, or it has none')),
      fetchedAt: z
        .nullable(time)
        .check(describe('the last fetch by the isolate that answers; null: none')),
      state: z
        .enum(['configured', 'not fetched', 'fetched', 'failing', 'no keys'])
        .check(
          describe(
            'failing: the last fetch failed, and earlier keys are used if there are any; no keys: it has no key set, and its JWTs are refused',
          ),
        ),
    }),
  ),
})

export function issuerCalls({
  breakers,
  config,
}: FeatureParts): (frame: CallFrame) => readonly AdminCall[] {
  /** Several key sets may have one URL: that of the tokens, and that of the sign-in. */
  function fetchesOf(url: string) {
    const found = breakers.list.filter(({ name, target }) => name === 'key_set' && target === url)
    const times = found.flatMap(({ fetchedAtMs }) => fetchedAtMs?.() ?? [])
    const isFailing = found.some(({ state }) => state() !== 'closed')
    const at = times.length === 0 ? null : new Date(Math.max(...times)).toISOString()
    const state = isFailing ? 'failing' : at === null ? 'not fetched' : 'fetched'
    return { keys: url, fetchedAt: at, state } as const
  }

  return (frame) => [
    adminGroup(
      'Records',
      frame,
    )({
      method: 'GET',
      path: '/issuers',
      permission: 'keys:list',
      id: 'readIssuers',
      summary: 'Read the state of the keys of the issuers',
      description:
        'Each isolate fetches keys itself. The answer is that of one isolate. Operators with a tenant are refused (403).',
      response: 'The trusted issuers, in the order of the configuration.',
      reply: () => issuersView,
      handle({ scope }) {
        refuseTenant(scope)
        return {
          issuers: config.issuers.map(({ issuer, jwks, jwksUri, keySet }) => ({
            issuer,
            ...(jwks === undefined && keySet === undefined
              ? fetchesOf(jwksUri ?? issuer)
              : {
                  keys: null,
                  fetchedAt: null,
                  state: keySet === undefined ? ('configured' as const) : ('no keys' as const),
                }),
          })),
        }
      },
    }),
  ]
}
