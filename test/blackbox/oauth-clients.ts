/** Creates OAuth clients of the stack through the operators' API. */
import type { Stack } from '../harness/stack.ts'

export interface StackClient {
  readonly id: string
  readonly secret: string
}

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** Posts a form as a client with Basic authentication. */
export function postAs(
  { id, secret }: StackClient,
  url: string,
  params: Record<string, string>,
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` },
    body: new URLSearchParams(params),
  })
}

/** Creates a client through the operators' API. */
export async function createStackClient(
  stack: Stack,
  described: object = {},
): Promise<StackClient> {
  const [gateway] = stack.gateways
  const grant = { grant_type: 'client_credentials' }
  const token = await postAs(stack.operator, `${gateway}/oauth/token`, grant)
  const { access_token } = (await token.json()) as { access_token: string }
  const created = await fetch(`${gateway}/-/admin/clients`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      name: 'black box',
      grants: ['client_credentials', 'refresh_token', EXCHANGE],
      ...described,
    }),
  })
  if (created.status !== 201) throw new Error(`a client: ${created.status} ${await created.text()}`)
  const { clientId, clientSecret } = (await created.json()) as Record<string, string>
  return { id: clientId ?? '', secret: clientSecret ?? '' }
}
