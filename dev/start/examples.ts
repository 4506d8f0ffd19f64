/** Example requests for a gateway that has started, ready to paste. */
import { permissionSet } from '../../src/access/permissions.ts'
import { accessOf } from '../../src/features/mcp/index.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { DEMO_ORDER } from './demo-relations.ts'
import type { Demo, PolicyFeatures } from './project.ts'
import { defaultPublicUrl } from './settings.ts'

export const DEMO_SUBJECT = 'alice'
const DEFAULT_ROLE = 'reader'
/** The start of a parameter or a wildcard in a path. */
const VARIABLE = /[:*{]/
/** The credentials of the demo subject. Double quotes: the shell replaces the variable. */
const BEARER = `-H "Authorization: Bearer $TOKEN"`

/** An MCP server answers with one message or with a stream. */
const MCP_HEADERS =
  "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'"

/** A request, and what is expected of it. */
export interface Example {
  /** Begins with the expected status. */
  readonly comment: string
  /** The arguments of `curl -i`. */
  readonly request: string
  /** A subject other than the demo subject whose token the request has, instead of `$TOKEN`. */
  readonly as?: string
}

/** Requests, and the role of the demo subject in them. */
export interface Examples {
  readonly role: string
  readonly requests: readonly Example[]
}

/** Returns the arguments with which a command prints the token of a subject. */
export const tokenArguments = (subject: string, role: string): string =>
  `--subject ${subject} --role ${quoted(role)}`

/** Quotes a word for a shell if that is necessary. */
const quoted = (word: string): string =>
  /^[\w:./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/**
 * Returns `curl` commands, each below its comment, after the one that assigns their token. If the policy has
 * operators, also a command of the command line. `url` is the address of the gateway.
 */
export function demoOf(
  url: string,
  { role, requests }: Examples,
  tokenCommand: string,
  { operators, authorizationServer }: Pick<PolicyFeatures, 'operators' | 'authorizationServer'>,
): Demo {
  const tokenOf = (subject: string) => `$(${tokenCommand} ${tokenArguments(subject, role)})`
  const lines = requests.map(({ comment, request, as }) => {
    const sent = as === undefined ? request : request.replace('$TOKEN', () => tokenOf(as))
    return `# ${comment}\ncurl -i ${sent}`
  })
  const where = url === defaultPublicUrl() ? '' : ` --url ${url}`
  if (operators && authorizationServer)
    lines.push(
      `# refused requests and their reasons\nnpx portcullis audit query --decision deny${where}`,
    )
  return { role, examples: [`TOKEN=${tokenOf(DEMO_SUBJECT)}`, ...lines].join('\n') }
}

/** Returns requests for the default policy. `hasRelations`: the tuples of the demo exist. */
export function shippedRequests(url: string, hasRelations: boolean): Examples {
  const requests: Example[] = [
    { comment: '200: alice is a reader', request: `${BEARER} ${url}/orders` },
    { comment: '401: no token', request: `${url}/orders` },
    {
      comment: '403: a reader may not write',
      request: `${BEARER} -H 'Content-Type: application/json' -d '{"item":"book","quantity":1}' ${url}/orders`,
    },
  ]
  const invoice = `${BEARER} ${url}/orders/${DEMO_ORDER}/invoice`
  if (hasRelations)
    requests.push(
      {
        comment: '200: alice is a viewer through her organization, five levels up',
        request: invoice,
      },
      {
        comment: '403: mallory is a reader without a relation to this order',
        request: invoice,
        as: 'mallory',
      },
    )
  return { role: DEFAULT_ROLE, requests }
}

/** Returns requests for a gateway with an unknown policy. */
export const generalRequests = (url: string): Examples => ({
  role: DEFAULT_ROLE,
  requests: [
    { comment: '200: ready', request: `${url}/-/readyz` },
    { comment: '200: the public signing keys', request: `${url}/.well-known/jwks.json` },
    {
      comment: '404, or the response of your route to alice, a reader',
      request: `${BEARER} ${url}/`,
    },
  ],
})

/** Returns requests for an app. Its routes are unknown. */
export const appRequests = (url: string): Examples => ({
  role: DEFAULT_ROLE,
  requests: [
    {
      comment: '404, or the response of your route to alice, a reader',
      request: `${BEARER} ${url}/`,
    },
    { comment: '401: no token', request: `${url}/` },
  ],
})

/**
 * Returns a request that a role of the policy permits, the same one without a token, and one that
 * the role does not permit. Uses only routes without parameters and relations, and calls the tools of an MCP server if
 * there is no other. Returns {@link generalRequests} if the policy has neither.
 */
export function requestsOf(
  { roles, routes }: Pick<Policy, 'roles' | 'routes'>,
  url: string,
): Examples {
  const plain = routes.filter(
    ({ path, relation, mcp }) =>
      relation === undefined && mcp === undefined && !VARIABLE.test(path),
  )
  const sets = [...roles].map(([role, patterns]) => ({ role, set: permissionSet(patterns) }))
  for (const { method, path, permission } of plain) {
    if (method !== 'GET' || permission === undefined) continue
    const holder = sets.find(({ set }) => set.covers(permission))
    if (holder === undefined) continue
    const { role, set } = holder
    const forbidden = plain.find(
      (route) => route.permission !== undefined && !set.covers(route.permission),
    )
    const requests: Example[] = [
      { comment: `200: alice has the role ${role}`, request: `${BEARER} ${url}${path}` },
      { comment: '401: no token', request: `${url}${path}` },
    ]
    if (forbidden !== undefined)
      requests.push({
        comment: `403: the role ${role} does not have ${forbidden.permission}`,
        request: `-X ${forbidden.method} ${BEARER} ${url}${forbidden.path}`,
      })
    return { role, requests }
  }
  return mcpRequests({ roles, routes }, url) ?? generalRequests(url)
}

/** Returns calls of an MCP server. Undefined: the policy has none, or no role may use it. */
function mcpRequests(
  { roles, routes }: Pick<Policy, 'roles' | 'routes'>,
  url: string,
): Examples | undefined {
  const sets = [...roles].map(([role, patterns]) => ({ role, set: permissionSet(patterns) }))
  for (const { method, path, permission, relation, mcp } of routes) {
    if (method !== 'POST' || mcp === undefined || permission === undefined) continue
    const holder = sets.find(({ set }) => set.covers(permission))
    if (holder === undefined || relation !== undefined || VARIABLE.test(path)) continue
    const { role, set } = holder
    const tools = Object.entries(accessOf(mcp)?.tools ?? {})
      .filter(([name]) => name !== '*')
      .map(([name, entry]) => ({ name, ...(entry === true ? {} : entry) }))
    const allowed = tools.find(
      (tool) =>
        tool.arguments === undefined &&
        tool.relation === undefined &&
        (tool.permission === undefined || set.covers(tool.permission)),
    )
    const refused = tools.find((tool) => tool.permission && !set.covers(tool.permission))
    const send = (message: object, bearer = `${BEARER} `) =>
      `${bearer}${MCP_HEADERS} -d ${quoted(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }))} ${url}${path}`
    const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } })
    const message = allowed === undefined ? { method: 'tools/list' } : call(allowed.name)
    const requests: Example[] = [
      { comment: `200: alice has the role ${role}`, request: send(message) },
      { comment: '401: no token', request: send(message, '') },
    ]
    if (refused !== undefined)
      requests.push({
        comment: `403: the role ${role} does not have ${refused.permission}`,
        request: send(call(refused.name)),
      })
    return { role, requests }
  }
  return undefined
}
