/** Plans of the FAPI 2.0 security profile, against a gateway with `authorizationServer({ profile: 'fapi2' })`. */
import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { authorizationCode } from '../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { signIn } from '../../src/features/sign-in/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { freePort } from '../free-port.ts'
import { startGateway } from './gateway.ts'
import { startProvider } from './provider.ts'
import type { Plan } from './run-plan.ts'
import type { Certificate } from './secure-front.ts'

const ALIAS = 'portcullis-as'
const SCOPE = 'orders:read'
const GRANTS = ['authorization_code', 'refresh_token', 'client_credentials']

/** Creates the plan of a flow. */
export async function createFapiPlan(
  flow: 'client_credentials' | 'code',
  suiteUrl: string,
  certificate: Certificate,
): Promise<Plan> {
  const callback = `${suiteUrl}/test/a/${ALIAS}/callback`
  const clients = [await createClient(callback, 'PS256'), await createClient(callback, 'ES256')]
  const gateway = await startFapiGateway(
    certificate,
    clients.map(({ registered }) => registered),
  )
  const allows = [browserFor(gateway, callback, 'Allow')]
  const [client, client2] = clients.map(({ configured }) => configured)
  const configuration = {
    alias: ALIAS,
    description: 'Portcullis',
    server: { discoveryUrl: `${gateway.url}/.well-known/oauth-authorization-server` },
    client,
    client2,
    resource: { resourceUrl: `${gateway.url}/orders` },
    options: { browsercontrol_css_enable: false },
    browser: allows,
    override: {
      'fapi2-security-profile-final-user-rejects-authentication': {
        browser: [browserFor(gateway, callback, 'Deny')],
      },
      // On the first visit, the user leaves the login page.
      'fapi2-security-profile-final-par-ensure-reused-request-uri-prior-to-auth-completion-succeeds':
        {
          browser: [
            { match: `${gateway.url}/oauth/authorize*`, 'match-limit': 1, tasks: [] },
            ...allows,
          ],
        },
    },
  }
  return {
    name: 'fapi2-security-profile-final-test-plan',
    title:
      flow === 'code'
        ? 'FAPI 2.0 security profile, code flow'
        : 'FAPI 2.0 security profile, client credentials',
    variant: {
      openid: 'plain_oauth',
      client_auth_type: 'private_key_jwt',
      sender_constrain: 'dpop',
      authorization_request_type: 'simple',
      fapi_profile: flow === 'code' ? 'plain_fapi' : 'fapi_client_credentials_grant',
    },
    configuration,
    close: gateway.close,
  }
}

/** Creates a client with a key: for `CLIENTS`, and for the suite. */
async function createClient(callback: string, alg: 'ES256' | 'PS256') {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const id = randomUUID()
  const marks = { alg, use: 'sig', kid: randomUUID() }
  const jwkOf = async (key: CryptoKey): Promise<JWK> => ({ ...(await exportJWK(key)), ...marks })
  return {
    registered: {
      id,
      name: 'Conformance suite',
      grants: GRANTS,
      roles: ['reader'],
      redirectUris: [callback, `${callback}?dummy1=lorem&dummy2=ipsum`],
      profile: 'fapi2',
      jwks: { keys: [await jwkOf(publicKey)] },
    },
    configured: {
      client_id: id,
      scope: SCOPE,
      dpop_signing_alg: 'ES256',
      jwks: { keys: [await jwkOf(privateKey)] },
    },
  }
}

async function startFapiGateway(certificate: Certificate, clients: readonly object[]) {
  const provider = await startProvider('reader')
  const port = await freePort()
  const url = `https://localhost:${port}`
  const policy = definePolicy({
    roles: { reader: [SCOPE] },
    limits: {},
    features: [
      authorizationServer({ profile: 'fapi2' }),
      signIn({ requestsPerMinute: 10_000 }),
      authorizationCode({ scopes: { [SCOPE]: 'Read orders' } }),
    ],
    routes: [{ method: 'GET', path: '/orders', permission: SCOPE }],
  })
  const close = await startGateway({
    ...{ certificate, port, policy },
    variables: {
      CLIENTS: clients,
      ISSUERS: [{ issuer: provider.issuer, audience: url, algorithms: ['ES256'] }],
      ISSUER_CLIENTS: [
        { issuer: provider.issuer, ...provider.client, signIn: { name: 'Example' } },
      ],
    },
  })
  return {
    url,
    loginUrl: provider.issuer,
    async close() {
      await close()
      provider.close()
    },
  }
}

/** The steps of the scripted browser: login, consent, and the return; or a page that refuses the request. */
function browserFor(
  { url, loginUrl }: { readonly url: string; readonly loginUrl: string },
  callback: string,
  decision: 'Allow' | 'Deny',
): object {
  const press = (text: string) => ['click', 'xpath', `//button[text()='${text}']`, 'optional']
  const steps: readonly [string, string, readonly (string | number)[]][] = [
    ['Login', `${loginUrl}/*`, press('Log in')],
    ['Consent', `${url}/oauth/*`, press(decision)],
    [
      'Refusal',
      `${url}/oauth/*`,
      ['wait', 'xpath', '//h1', 10, '.*', 'update-image-placeholder-optional'],
    ],
    ['Return', `${callback}*`, ['wait', 'id', 'submission_complete', 10]],
  ]
  return {
    match: `${url}/oauth/authorize*`,
    tasks: steps.map(([task, match, command]) => ({
      ...{ task, match, optional: true, commands: [command] },
    })),
  }
}
