/** The operator: creates credentials and revokes them while they are in use. */
import type { Expectation } from '../chaos/ledger.ts'
import { membersOf } from '../load/client.ts'
import type { TokenClient } from '../stack/credentials.ts'
import type { Sender } from './sender.ts'

/** What can be revoked, and how it is named. */
export type RevocationKind = 'token' | 'session' | 'subject' | 'tenant'

export type Operator = ReturnType<typeof createOperator>

const ADDRESS = '2001:db8:ffff:ffff::1'
const TOKEN_SECONDS = 3_600
const BAN_SECONDS = 3_600

/** Creates the operator. Its calls return `undefined` or `false` on failure. */
export function createOperator(sender: Sender, { id, secret }: TokenClient) {
  let token = ''

  async function call(path: string, body: object): Promise<Record<string, unknown> | undefined> {
    const answer = await sender.send({
      expectation: own('operator', [201]),
      outgoing: {
        method: 'POST',
        path: `/-/admin${path}`,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'cf-connecting-ip': ADDRESS,
          'x-forwarded-for': ADDRESS,
        },
        body: JSON.stringify(body),
      },
    })
    return answer.status === 201 ? membersOf(answer.body) : undefined
  }

  return {
    async login(): Promise<boolean> {
      const answer = await sender.send({
        expectation: own('operator login', [200]),
        outgoing: formOf('/oauth/token', { id, secret }, { grant_type: 'client_credentials' }),
      })
      const granted = membersOf(answer.body).access_token
      if (typeof granted !== 'string') return false
      token = granted
      return true
    },
    async mintOpaque(subject: string) {
      const minted = await call('/tokens', {
        subject,
        roles: ['reader'],
        format: 'opaque',
        ttlSeconds: TOKEN_SECONDS,
      })
      return minted?.token as string | undefined
    },
    async createApiKey(subject: string) {
      const created = await call('/api-keys', { name: 'soak', subject, roles: ['reader'] })
      return created?.apiKey as string | undefined
    },
    async revoke(kind: RevocationKind, value: string, issuer: string) {
      return (await call('/revocations', { kind, value, issuer })) !== undefined
    },
    async ban(subject: string) {
      const ban = { kind: 'subject', value: subject, seconds: BAN_SECONDS }
      return (await call('/bans', ban)) !== undefined
    },
  }
}

/** Returns the expectation of a request that the gateway answers itself. */
const own = (kind: string, right: readonly number[]): Expectation => ({
  kind,
  right,
  mayReachOrigin: 'yes',
  subject: '',
})

/** Returns a form request of a client with HTTP Basic authentication. */
function formOf(path: string, { id, secret }: TokenClient, fields: Record<string, string>) {
  return {
    method: 'POST',
    path,
    headers: {
      authorization: `Basic ${btoa(`${id}:${secret}`)}`,
      'content-type': 'application/x-www-form-urlencoded',
      'cf-connecting-ip': ADDRESS,
      'x-forwarded-for': ADDRESS,
    },
    body: new URLSearchParams(fields).toString(),
  }
}
