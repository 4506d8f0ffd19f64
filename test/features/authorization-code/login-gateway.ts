/** A gateway with the authorization code flow whose users sign in at a real provider. */
import { startGateway } from '../../harness/gateway.ts'
import { freePort } from '../../harness/process.ts'
import { privateJwk } from '../authorization-server/gateway.ts'
import { policy } from './code-policy.ts'

/** A client that an operator has registered. */
export const OWN_CLIENT = {
  id: '6f1b6f0e-6a70-4a3c-9d5c-0f6f5f3f7b11',
  name: 'Bank',
  grants: ['authorization_code'],
  redirectUris: ['https://bank.example.org/cb'],
  public: true,
}

interface LoginProvider {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string }
  close(): Promise<unknown>
}

/** Starts the gateway with the code flow and the sign-in. On Node, it runs in this process. */
export async function startLoginGateway<Provider extends LoginProvider>(
  runtime: 'Node' | 'workerd',
  startAt: (gatewayUrl: string) => Promise<Provider>,
) {
  const port = await freePort()
  const provider = await startAt(`http://127.0.0.1:${port}`)
  const { issuer, client } = provider
  const { id, secret } = client
  const gateway = await startGateway({
    runtime,
    policy: policy(),
    entry: 'test/features/authorization-code/code-worker.ts',
    port,
    publicUrl: 'own',
    issuers: () => [{ issuer, audience: `http://127.0.0.1:${port}`, algorithms: ['ES256'] }],
    variables: {
      SIGNING_KEYS: JSON.stringify({ keys: [privateJwk('es', 'ES256', 'ec')] }),
      CLIENTS: JSON.stringify([OWN_CLIENT]),
      ISSUER_CLIENTS: JSON.stringify([
        { issuer, id, secret, signIn: { name: 'Example', scope: 'openid profile' } },
      ]),
    },
  })
  return {
    url: gateway.url,
    provider,
    reached: gateway.requests,
    async close() {
      await Promise.all([gateway.close(), provider.close()])
    },
  }
}
