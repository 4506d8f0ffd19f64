/** Relation tuples of the demo orders, written when the gateway runs with the default policy. */
import type { DevVars } from '../dev-vars.ts'

/** An order that always exists in the demo origin. */
export const DEMO_ORDER = '0190f8a0-7c3a-7000-8000-000000000001'
const ORDER = `order:${DEMO_ORDER}`

/** `object relation subject`, five levels between alice and the order; see `portcullis.fga`. */
const TUPLES = [
  `${ORDER} project project:library`,
  'project:library team team:books',
  'team:books department department:media',
  'department:media organisation organisation:acme',
  'organisation:acme viewer user:alice',
  // Carol may approve the order. Bob is in the same team but may not approve it, because he owns
  // it.
  `${ORDER} owner user:bob`,
  `${ORDER} approver team:books#member`,
  'team:books member user:bob',
  'team:books member user:carol',
]
const WRITES = TUPLES.map((tuple) => {
  const [object, relation, subject] = tuple.split(' ')
  return { object, relation, subject }
})

const TIMEOUT_MS = 5_000
/** Several attempts, because a machine that has just started everything may respond late. */
const ATTEMPTS = 5
const PAUSE_MS = 500

/**
 * Writes the tuples through the operators' API, as the operator of this checkout. Existing tuples
 * have no effect. Returns whether the tuples exist. A gateway with a changed policy or other
 * clients may refuse them, but still starts.
 */
export async function writeDemoRelations(
  url: string,
  operator: Pick<DevVars, 'PORTCULLIS_CLIENT_ID' | 'PORTCULLIS_CLIENT_SECRET'>,
): Promise<boolean> {
  const { PORTCULLIS_CLIENT_ID: id, PORTCULLIS_CLIENT_SECRET: secret } = operator
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const status = await write(url, `${id}:${secret}`).catch(() => 0)
    if (status === 200) return true
    if (status !== 0 && status !== 503) return false
    await new Promise((done) => setTimeout(done, PAUSE_MS))
  }
  return false
}

/** Returns the status of the first response that is not a success, or of the last response. */
async function write(url: string, credentials: string): Promise<number> {
  const granted = await post(
    `${url}/oauth/token`,
    `Basic ${Buffer.from(credentials).toString('base64')}`,
    new URLSearchParams({ grant_type: 'client_credentials' }),
  )
  if (!granted.ok) return granted.status
  const { access_token: token } = (await granted.json()) as { access_token: string }
  const body = JSON.stringify({ writes: WRITES })
  return (await post(`${url}/-/admin/relations`, `Bearer ${token}`, body)).status
}

function post(url: string, authorization: string, body: string | URLSearchParams) {
  const json = typeof body === 'string' ? { 'Content-Type': 'application/json' } : {}
  return fetch(url, {
    method: 'POST',
    headers: { Authorization: authorization, ...json },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
}
