/** Example requests for a gateway that has started, ready to paste. */
import { permissionSet } from '../../src/access/permissions.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { type Signer, signAccessToken } from './access-token.ts'
import { DEMO_ORDER } from './demo-relations.ts'
import { defaultPublicUrl } from './settings.ts'

const TTL_SECONDS = 3_600
const DEFAULT_ROLE = 'reader'
/** The start of a parameter or a wildcard in a path. */
const VARIABLE = /[:*{]/

/** A comment that begins with the expected status, and the arguments of `curl -i`. */
export type Example = readonly [comment: string, request: string]

/**
 * Returns `curl` commands, each below its comment. With `hasCommandLine`, also a command of the
 * command line. `url` is the address of the gateway.
 */
export function printed(
  url: string,
  requests: readonly Example[],
  hasCommandLine: boolean,
): string {
  const lines = requests.map(([comment, request]) => `# ${comment}\ncurl -i ${request}`)
  const where = url === defaultPublicUrl() ? '' : ` --url ${url}`
  if (hasCommandLine)
    lines.push(
      `# refused requests and their reasons\nnpx portcullis audit query --decision deny${where}`,
    )
  return lines.join('\n')
}

/** Returns requests for the default policy. `hasRelations`: the tuples of the demo exist. */
export async function shippedRequests(
  url: string,
  signer: Signer,
  hasRelations: boolean,
): Promise<readonly Example[]> {
  const bearer = await bearerOf('alice', DEFAULT_ROLE, signer)
  const requests: Example[] = [
    ['200: alice is a reader', `${bearer} ${url}/orders`],
    ['401: no token', `${url}/orders`],
    [
      '403: a reader may not write',
      `${bearer} -H 'Content-Type: application/json' -d '{"item":"book","quantity":1}' ${url}/orders`,
    ],
  ]
  if (!hasRelations) return requests
  const invoice = `${url}/orders/${DEMO_ORDER}/invoice`
  const mallory = await bearerOf('mallory', DEFAULT_ROLE, signer)
  return [
    ...requests,
    ['200: alice is a viewer through her organization, five levels up', `${bearer} ${invoice}`],
    ['403: mallory is a reader without a relation to this order', `${mallory} ${invoice}`],
  ]
}

/** Returns requests for a gateway with an unknown policy. */
export async function generalRequests(url: string, signer: Signer): Promise<readonly Example[]> {
  const bearer = await bearerOf('alice', DEFAULT_ROLE, signer)
  return [
    ['200: ready', `${url}/-/readyz`],
    ['200: the public signing keys', `${url}/.well-known/jwks.json`],
    ['404, or the response of your route to alice, a reader', `${bearer} ${url}/`],
  ]
}

/** Returns requests for an app. Its routes are unknown. */
export async function appRequests(url: string, signer: Signer): Promise<readonly Example[]> {
  const bearer = await bearerOf('alice', DEFAULT_ROLE, signer)
  return [
    ['404, or the response of your route to alice, a reader', `${bearer} ${url}/`],
    ['401: no token', `${url}/`],
  ]
}

/**
 * Returns a request that a role of the policy permits, the same one without a token, and one that
 * the role does not permit. Uses only routes without parameters and relations. Returns
 * {@link generalRequests} if the policy has no such route.
 */
export async function requestsOf(
  { roles, routes }: Pick<Policy, 'roles' | 'routes'>,
  url: string,
  signer: Signer,
): Promise<readonly Example[]> {
  const plain = routes.filter(
    ({ path, relation }) => relation === undefined && !VARIABLE.test(path),
  )
  const sets = [...roles].map(([role, patterns]) => ({ role, set: permissionSet(patterns) }))
  for (const { method, path, permission } of plain) {
    if (method !== 'GET' || permission === undefined) continue
    const holder = sets.find(({ set }) => set.covers(permission))
    if (holder === undefined) continue
    const bearer = await bearerOf('alice', holder.role, signer)
    const forbidden = plain.find(
      (route) => route.permission !== undefined && !holder.set.covers(route.permission),
    )
    const allowed: Example = [`200: alice has the role ${holder.role}`, `${bearer} ${url}${path}`]
    const anonymous: Example = ['401: no token', `${url}${path}`]
    if (forbidden === undefined) return [allowed, anonymous]
    const { permission: missing, method: verb, path: target } = forbidden
    return [
      allowed,
      anonymous,
      [
        `403: the role ${holder.role} does not have ${missing}`,
        `-X ${verb} ${bearer} ${url}${target}`,
      ],
    ]
  }
  return await generalRequests(url, signer)
}

async function bearerOf(subject: string, role: string, signer: Signer): Promise<string> {
  const request = { subject, client: 'dev', roles: [role], ttlSeconds: TTL_SECONDS }
  return `-H 'Authorization: Bearer ${await signAccessToken(request, signer)}'`
}
