/** Explains a request for `portcullis explain`. Loaded only by that command. */
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { formatTuple } from '../../src/access/relations/tuple.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import type { Explanation } from '../../src/gateway/explanation/explanation.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import type { PolicyTester, PolicyTesterOptions, TestedRequest } from '../../src/testing/index.ts'
import { textOf } from '../arguments.ts'
import { type CommonOptions, workWith } from '../command.ts'
import { REFUSED, refused, UNDECIDED, usage } from '../failure.ts'
import { createOutput, type Output } from '../output.ts'
import { requireProject } from '../project.ts'
import { cell, type Style, table } from '../text.ts'
import { tupleIn } from '../tuples.ts'
import { loadPolicy, policyFile, projectModule } from './load.ts'
import { wholeGrants } from './replay-decide.ts'

export interface ExplainOptions extends CommonOptions {
  readonly policy?: string
  readonly subject?: string
  readonly role?: readonly string[]
  readonly scope?: readonly string[]
  readonly client?: string
  readonly tenant?: string
  readonly issuer?: string
  readonly acr?: string
  /** Seconds. */
  readonly loginAge?: number
  readonly tokenStdin?: boolean
  readonly host?: string
  readonly header?: readonly string[]
  readonly body?: string
  readonly address?: string
  readonly relation?: readonly string[]
  readonly requestId?: string
  /** True without a URL. */
  readonly live?: string | true
}

interface TestingModule {
  readonly policyTester: (policy: Policy, options?: PolicyTesterOptions) => PolicyTester
}

/** A request whose parts were given, or are those of an audit event. */
interface Question {
  readonly method: string
  readonly path: string
  readonly caller: Caller | undefined
  readonly token: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly address: string | undefined
}

interface Caller {
  readonly subject: string
  readonly issuer?: string | undefined
  readonly client?: string | undefined
  readonly tenant?: string | undefined
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
  readonly acr?: string | undefined
  /** Seconds since the epoch. */
  readonly authTime?: number | undefined
}

const DEFAULT_ISSUER = 'https://issuer.test'
const DEFAULT_SUBJECT = 'caller'
const STAGE_COLUMNS = ['stage', 'outcome', 'why', 'read'] as const

export async function explainRequest(
  method: string | undefined,
  path: string | undefined,
  options: ExplainOptions,
): Promise<void> {
  const output = createOutput(options.json ?? false)
  const event = options.requestId === undefined ? undefined : await recordedEvent(options)
  const question = await questionOf(method, path, options, event)
  if (event !== undefined) remarkAbout(event, path, output)
  const isLive = options.live !== undefined
  const explanation = isLive
    ? await askGateway(question, options)
    : await explainHere(question, options, output)
  if (event !== undefined && path === undefined) refuseOtherObject(event, explanation)
  output.result(explanation, textFor(explanation, question, output.style))
  if (question.token !== undefined && !isLive)
    output.remark('The signature, issuer and audience of the token are not verified.')
  if (explanation.decision === 'deny') process.exitCode = REFUSED
  if (explanation.decision === 'error') process.exitCode = UNDECIDED
}

const connectionOf = ({ live, clientId, json }: ExplainOptions): CommonOptions => ({
  ...(typeof live === 'string' && { url: live }),
  ...(clientId !== undefined && { clientId }),
  ...(json !== undefined && { json }),
})

async function recordedEvent(options: ExplainOptions): Promise<AuditEvent> {
  const { gateway } = workWith(connectionOf(options))
  const { requestId } = options
  const page = await gateway.get<{ readonly events: readonly AuditEvent[] }>('/audit', {
    requestId,
  })
  const [event] = page.events
  if (event === undefined)
    throw refused('not_found', `the audit trail has no event of the request ${requestId}`)
  return event
}

function remarkAbout(
  { decision, status, reason, time, route, grants }: AuditEvent,
  path: string | undefined,
  output: Output,
): void {
  output.remark(`Recorded at ${time}: ${decision}, ${status}, ${reason}.`)
  if (path === undefined && route !== null && /[:*]/.test(route))
    output.remark(
      `The audit trail does not record paths: the explanation uses ${samplePath(route, grants)} for ${route}.`,
    )
}

/** The name of a parameter of a pattern, with its optional expression, or a wildcard. */
const PARAMETER = /:\w+(?:\{[^}]*\})?\??|\*/g

/**
 * Returns a path of a pattern. The object of the recorded relation takes the place of the only parameter:
 * `refuseOtherObject` checks whether it does so in the policy.
 */
function samplePath(pattern: string, grants: AuditEvent['grants']): string {
  const [, id] = /^[^:]*:(.+)#[^#]*$/.exec(grants?.relation ?? '') ?? []
  const isOnly = pattern.match(PARAMETER)?.length === 1
  const value = id !== undefined && isOnly ? encodeURIComponent(id) : 'sample'
  return pattern.replaceAll(PARAMETER, () => value)
}

/** Throws if a relation decided, and the explanation is not about the object of the event. */
function refuseOtherObject({ reason, grants, route }: AuditEvent, { stages }: Explanation): void {
  const relations = stages.flatMap(({ read: { relation } }) =>
    typeof relation === 'string' ? [relation] : [],
  )
  const recorded = grants?.relation
  const isSame =
    recorded === undefined
      ? !/^relation_/.test(reason)
      : relations.every((text) => text.startsWith(`${recorded}@`))
  if (isSame) return
  throw usage(
    `the event is about ${recorded ?? 'an object that it does not name'}, and the trail has no path: ` +
      `name the path of the request, for ${route}`,
  )
}

async function questionOf(
  method: string | undefined,
  path: string | undefined,
  options: ExplainOptions,
  event: AuditEvent | undefined,
): Promise<Question> {
  const {
    subject,
    role,
    scope,
    client,
    tenant,
    issuer,
    acr,
    loginAge,
    tokenStdin = false,
  } = options
  const host = options.host ?? event?.host?.replace('*', 'sample')
  const recordedPath = event?.route == null ? undefined : samplePath(event.route, event.grants)
  const known = { method: method ?? event?.method, path: path ?? recordedPath }
  if (known.method === undefined || known.path === undefined)
    throw usage(
      event === undefined
        ? 'name the method and the path of the request: portcullis explain GET /orders/1'
        : 'the event has no route; name the method and the path of the request',
    )
  const actor = event?.actor.subject == null ? undefined : event.actor
  // Of another caller, the recorded roles say nothing.
  const granted = subject === undefined ? wholeGrants(event?.grants) : undefined
  const names = [subject, role, scope, client, tenant, issuer, acr, loginAge]
  if (tokenStdin && names.some((value) => value !== undefined))
    throw usage(
      '--token-stdin cannot be combined with --subject, --role, --scope, --client, --tenant, --issuer, --acr or --login-age',
    )
  const isNamed = names.some((value) => value !== undefined) || actor !== undefined
  return {
    method: known.method.toUpperCase(),
    path: known.path,
    token: tokenStdin ? await textOf('-') : undefined,
    caller:
      !tokenStdin && isNamed
        ? {
            subject: subject ?? actor?.subject ?? DEFAULT_SUBJECT,
            issuer: issuer ?? actor?.issuer ?? undefined,
            client: client ?? actor?.client ?? undefined,
            tenant: tenant ?? actor?.tenant ?? undefined,
            roles: role ?? granted?.roles ?? [],
            scopes: scope ?? granted?.scopes ?? [],
            acr,
            authTime: loginAge === undefined ? undefined : Math.floor(Date.now() / 1000) - loginAge,
          }
        : undefined,
    headers: {
      ...(host !== undefined && { host }),
      ...Object.fromEntries((options.header ?? []).map(headerIn)),
    },
    body: options.body,
    address: options.address ?? addressOf(event),
  }
}

/** An IPv6 address is recorded as its group. A hash is no address. */
function addressOf(event: AuditEvent | undefined): string | undefined {
  const address = event?.address.replace(/::\/64$/, '::')
  return address !== undefined && /^[\d.]+$|:/.test(address) ? address : undefined
}

function headerIn(text: string): readonly [string, string] {
  const at = text.indexOf(':')
  if (at < 1) throw usage('--header must be "Name: value"')
  return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]
}

async function askGateway(question: Question, options: ExplainOptions): Promise<Explanation> {
  if (options.relation !== undefined || options.policy !== undefined)
    throw usage(
      '--live uses the policy and the relations of the gateway, not --policy or --relation',
    )
  const { gateway } = workWith(connectionOf(options))
  return gateway.post<Explanation>('/explanations', question)
}

async function explainHere(
  question: Question,
  options: ExplainOptions,
  output: Output,
): Promise<Explanation> {
  const folder = process.cwd()
  const root = requireProject(folder)
  const policy = await loadPolicy(policyFile(options.policy, '--policy', folder, root), root).catch(
    misconfigured,
  )
  for (const role of options.role ?? [])
    if (!policy.roles.has(role)) {
      const suggestion = didYouMean(role, [...policy.roles.keys()])
      output.remark(`The policy has no role ${role}${suggestion ? `; ${suggestion}` : '.'}`)
    }
  const { policyTester } = await projectModule<TestingModule>('testing', root)
  const facts = new Set((options.relation ?? []).map(tupleText))
  const { issuer, ...request } = testedRequestOf(question)
  const [named = DEFAULT_ISSUER] = policy.tenantIssuers ?? []
  try {
    const tester = policyTester(policy, {
      issuers: [issuer ?? named],
      relations: (query) => facts.has(formatTuple(query)),
    })
    return await tester.explain(`${question.method} ${question.path}`, request)
  } catch (error) {
    if (error instanceof TypeError) throw usage(error.message)
    return misconfigured(error)
  }
}

function misconfigured(error: unknown): never {
  const { name, message } = error as Error
  throw name === 'Misconfigured' ? usage(message) : error
}

function tupleText(text: string): string {
  const tuple = tupleIn(text)
  if (tuple === undefined) throw usage('--relation must be object#relation@subject')
  return formatTuple(tuple)
}

function testedRequestOf({
  caller,
  token,
  headers: { host, ...headers },
  body,
  address,
}: Question): TestedRequest & { readonly issuer: string | undefined } {
  const parts = {
    headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
    ...(host !== undefined && { host }),
    ...(body !== undefined && { body }),
    ...(address !== undefined && { address }),
  }
  if (token !== undefined) return { ...parts, ...claimsOf(token) }
  if (caller === undefined) return { ...parts, issuer: undefined }
  const { subject: sub, issuer, client, tenant, roles, scopes: scope, acr, authTime } = caller
  const claims = { client_id: client, acr, auth_time: authTime }
  const as = { sub, roles, claims, ...(scope.length > 0 && { scope }), ...(tenant && { tenant }) }
  return { ...parts, as, issuer }
}

/** Claims that the tester would add. */
const NO_CLAIMS = {
  sub: undefined,
  client_id: undefined,
  exp: undefined,
  iat: undefined,
  jti: undefined,
}

/** The token is signed again, for the issuer that it names. */
function claimsOf(
  token: string,
): Pick<TestedRequest, 'as'> & { readonly issuer: string | undefined } {
  try {
    const { iss, aud: _, ...claims } = decodeJwt(token)
    const { typ } = decodeProtectedHeader(token)
    return { as: { claims: { ...NO_CLAIMS, ...claims }, header: { typ } }, issuer: iss }
  } catch {
    throw usage('standard input is not a JWT; only --live can explain opaque tokens and API keys')
  }
}

function textFor(explanation: Explanation, { method, path }: Question, style: Style): string {
  const { decision, status, route, reason, observed, stages, origin } = explanation
  const outcome = { allow: 'allowed', deny: 'refused', error: 'not decided' }[decision]
  const lines = [
    `${style.colors.bold(outcome)}: ${method} ${path} is ${status}, ${reason}, by the route ${cell(route)}`,
    ...(observed.length > 0 ? [`observed only: ${observed.join(', ')}`] : []),
    '',
    table(
      stages.map((stage) => ({ ...stage, read: readText(stage.read) })),
      STAGE_COLUMNS,
      style,
    ),
  ]
  if (origin !== null) {
    const headers = Object.entries(origin.headers).map(
      ([name, value]) => `  ${name}: ${cell(value)}`,
    )
    lines.push('', `The origin gets ${origin.method} ${origin.path}`, ...headers)
  }
  return lines.join('\n')
}

/** Formats what a stage read: `address 192.0.2.1, limits standard`. Omits what has no value. */
function readText(read: Readonly<Record<string, unknown>>): string {
  return Object.entries(read)
    .filter(([, value]) => value !== undefined && value !== null && cell(value) !== '-')
    .map(([name, value]) => `${name} ${valueText(value)}`)
    .join(', ')
}

function valueText(value: unknown): string {
  if (!Array.isArray(value) || value.every((item) => typeof item !== 'object')) return cell(value)
  const limits = value as readonly { name: string; limit: number; remaining: number }[]
  return limits
    .map(({ name, limit, remaining }) => `${name} (${remaining} of ${limit} left)`)
    .join(' ')
}
