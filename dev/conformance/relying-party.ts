/** Plans of a relying party: the suite is the provider, and `signIn()` of a gateway its client. */
import { randomUUID } from 'node:crypto'
import { signIn } from '../../src/features/sign-in/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { freePort } from '../free-port.ts'
import { startGateway } from './gateway.ts'
import type { ModuleRun, Plan } from './run-plan.ts'
import type { Certificate } from './secure-front.ts'
import { createUser } from './user.ts'

const ALIAS = 'portcullis-rp'

/** The user goes no further than the sign-in, or also signs out. */
const PLANS = {
  basic: {
    name: 'oidcc-client-basic-certification-test-plan',
    title: 'OpenID Connect relying party, basic',
    variant: { client_registration: 'static_client', request_type: 'plain_http_request' },
    signsOut: false,
  },
  logout: {
    name: 'oidcc-client-back-channel-logout-rp-basic',
    title: 'OpenID Connect relying party, back-channel logout',
    variant: {
      client_auth_type: 'client_secret_basic',
      client_registration: 'static_client',
      request_type: 'plain_http_request',
      response_mode: 'default',
    },
    signsOut: true,
  },
} as const

/** Creates the plan. Each module gets a new gateway, since the suite has new keys for each. */
export async function createRelyingPartyPlan(
  kind: keyof typeof PLANS,
  suiteUrl: string,
  certificate: Certificate,
): Promise<Plan> {
  const { name, title, variant, signsOut } = PLANS[kind]
  const port = await freePort()
  const url = `https://localhost:${port}`
  const issuer = `${suiteUrl}/test/a/${ALIAS}/`
  const client = { id: 'gateway', secret: randomUUID() }
  const policy = () =>
    definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {},
      features: [signIn({ roles: ['reader'], requestsPerMinute: 10_000 })],
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', session: 'browser' }],
    })
  return {
    name,
    title,
    variant,
    configuration: {
      alias: ALIAS,
      description: 'Portcullis',
      client: {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uri: `${url}/oauth/callback`,
        post_logout_redirect_uri: `${url}/oauth/signed-out`,
        backchannel_logout_uri: `${url}/oauth/backchannel-logout`,
      },
    },
    async act({ state }: ModuleRun) {
      const close = await startGateway({
        ...{ certificate, port, policy: policy() },
        variables: {
          ISSUERS: [{ issuer, audience: url }],
          ISSUER_CLIENTS: [
            { issuer, ...client, signIn: { name: 'Suite', scope: 'openid profile email' } },
          ],
        },
      })
      try {
        const user = createUser()
        const page = await user.visit(`${url}/orders`)
        if (signsOut) await user.submit(await user.visit(`${url}/oauth/sign-out`))
        if (process.env.CONFORMANCE_VERBOSE)
          console.error(page.status, page.url, (await state()).status)
      } finally {
        await close()
      }
    },
    async close() {},
  }
}
