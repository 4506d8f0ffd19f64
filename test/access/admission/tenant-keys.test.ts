/** The number of keys that one admission reads, with and without a tenant. */
import { expect, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { windowOfPrincipal } from '../../../src/access/admission/limit-key.ts'
import { admitCommand } from '../../../src/access/admission/redis/admit-script.ts'
import type { AdmissionQuery } from '../../../src/access/admission/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createMemoryStore } from '../../../src/testing/memory-store.ts'
import { ADDRESS, principal } from './callers.ts'

const RULE = {
  name: 'standard',
  limit: 10,
  windowSeconds: 60,
  by: 'subject',
  onUnavailable: 'deny',
} as const

/** Returns the keys of the command that decides about a request of a caller. */
async function keysOf(who: Principal): Promise<readonly string[]> {
  const { admission: store } = createMemoryStore(Date.now)
  const queries: AdmissionQuery[] = []
  const recording: typeof store = {
    ...store,
    consult(query) {
      queries.push(query)
      return store.consult(query)
    },
  }
  const limits = [{ rule: RULE, ...(await windowOfPrincipal(RULE, who)) }]
  await createAdmission({ store: recording, now: Date.now }).admit({
    principal: who,
    address: ADDRESS,
    limits,
  })
  expect(queries).toHaveLength(1)
  const [query] = queries
  if (query === undefined) throw new Error('the admission made no call')
  const command = admitCommand('sha', DEFAULT_KEYS, query)
  return command.slice(3, 3 + Number(command[2])).map(String)
}

const caller = (claims: Partial<Principal>) =>
  principal({ subject: 'alice', client: 'app', session: undefined, ...claims })

test('a caller without a tenant reads 8 keys in one call, none of them of a tenant [S88]', async () => {
  const keys = await keysOf(caller({ tenant: undefined }))
  expect(keys).toHaveLength(8)
  expect(new Set(keys).size).toBe(8)
})

test('a caller with a tenant reads 14 keys in one call, a session adds two [S88]', async () => {
  const keys = await keysOf(caller({ tenant: 'acme' }))
  expect(keys).toHaveLength(14)
  expect(keys.filter((key) => key.includes(':acme:'))).toHaveLength(6)
  expect(await keysOf(caller({ tenant: 'acme', session: 's' }))).toHaveLength(16)
})

test('no key of a tenant is that of another tenant, issuer, subject or kind [S88]', async () => {
  const names = ['acme', 'acme:alice', 'alice', 'a%3Ab', ':']
  const seen = new Map<string, string>()
  for (const issuer of ['https://a.test', 'https://a.test:acme'])
    for (const tenant of [undefined, ...names])
      for (const subject of names) {
        const who = JSON.stringify([issuer, tenant, subject])
        const claims = { issuer, tokenIssuer: issuer, tenant, subject, client: undefined }
        for (const key of await keysOf(principal({ ...claims, session: undefined }))) {
          if (!key.includes('subject:')) continue
          // What the platform decides about a subject is the same in every tenant.
          const isEverywhere = key.split(':').length === partsOf(key)
          const owner = isEverywhere ? JSON.stringify([issuer, subject]) : who
          expect(seen.get(key) ?? owner).toBe(owner)
          seen.set(key, owner)
        }
      }
})

/** Returns the number of parts of a key of this kind that names issuer and subject, and no tenant. */
function partsOf(key: string): number {
  if (key.startsWith('pc:limit-override:')) return 8
  return key.startsWith('pc:limit:') ? 6 : 5
}
