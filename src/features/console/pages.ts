/** The routes of the console. Its pages and actions run operators' calls, with the rights of the visitor. */
import type { Context, MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { auditEventSchema } from '../../audit/event.ts'
import { summarySchema } from '../../audit/summary.ts'
import { Denied, Unavailable } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { replaceResponse } from '../../http/replaced-response.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { bodyOf, callerOf, recordField } from '../../middleware/context.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import { createReadmission } from '../../middleware/readmit.ts'
import { readWhole } from '../../middleware/validate.ts'
import type { AuthenticationDemand } from '../../policy/definition.ts'
import { completeRoute, OPERATORS_LIMIT } from '../../policy/route.ts'
import type { AdminCall, CallInput } from '../../routes/admin/call.ts'
import { inputRefused } from '../../routes/admin/input.ts'
import { peopleOf } from '../operators/people.ts'
import { signInPath } from '../sign-in/return-path.ts'
import { ACTIONS } from './actions.ts'
import { callerPage } from './caller-view.ts'
import { callerView, policyView } from './calls.ts'
import { CONSOLE_PATH, type ConsolePage, renderConsole } from './layout.ts'
import {
  decisionsPage,
  eventPage,
  explanationPage,
  overviewPage,
  PERIODS,
  policyPage,
  type Query,
} from './views.ts'

/** Opens the console. What its pages show needs the permission of the operators' call that returns it. */
export const CONSOLE_PERMISSION = 'portcullis:console:open'

/** 64 KiB. */
const MAX_FORM_BYTES = 65_536
const FORM_TIMEOUT_MS = 3_000
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i
/** A page of the console, so that a form leads nowhere else. */
const BACK = /^\/-\/console(?:[/?][\x21-\x7e]*)?$/
const REQUEST_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const DEFAULT_PERIOD = '1h'
const EVENTS = '50'

const auditPage = z.strictObject({
  events: z.array(auditEventSchema),
  cursor: z.optional(z.string()),
})
const explanation = z.object({
  decision: z.string(),
  status: z.number(),
  reason: z.string(),
  stages: z.array(z.object({ stage: z.string(), outcome: z.string(), why: z.string() })),
})

type Show = (c: Context) => Promise<ConsolePage | Response> | ConsolePage

/** Creates the pages, behind the guards of a route. */
export function consolePages(
  parts: FeatureParts,
  authentication: AuthenticationDemand | undefined,
): readonly AdminCall[] {
  const { policy, authorizer, admission, now } = parts
  const operatorLimit = policy.limits.get(OPERATORS_LIMIT)
  const limits = operatorLimit === undefined ? [] : [operatorLimit]
  const people = peopleOf(parts, { authentication, asksForLogin: true })
  const admitAgain = createReadmission({ admission, strict: true })

  const find = (id: string) =>
    parts.contributed().calls.find(({ operation }) => operation.id === id)

  /** Runs a call. Undefined if the visitor lacks its permission, or the gateway does not have it. */
  async function read<Schema extends z.core.$ZodType>(
    c: Context,
    id: string,
    schema: Schema,
    input: CallInput = {},
  ): Promise<z.output<Schema> | undefined> {
    const call = find(id)
    const caller = callerOf(c, 'console')
    const permission = call?.route.permission
    if (call?.invoke === undefined || caller === null || permission === undefined) return undefined
    if (!authorizer(caller, permission)) return undefined
    try {
      return z.parse(schema, await call.invoke(c, input))
    } catch (error) {
      // Such as a call that no operator of a tenant may make.
      if (error instanceof Denied && error.denial.code === 'permission_missing') return undefined
      throw error
    }
  }

  /** As {@link read}. Undefined as well without an audit database, which the page says. */
  async function readAudit<Schema extends z.core.$ZodType>(
    c: Context,
    id: string,
    schema: Schema,
    query: Readonly<Record<string, string>>,
  ) {
    return parts.auditDb === undefined ? undefined : read(c, id, schema, { query })
  }

  /** Runs a call that changes something. Throws `Denied` without its permission. */
  async function act(c: Context, id: string, input: CallInput): Promise<unknown> {
    const call = find(id)
    const caller = callerOf(c, 'console')
    const permission = call?.route.permission
    if (call?.invoke === undefined || caller === null || permission === undefined)
      throw new Denied({ code: 'not_found' })
    if (!authorizer(caller, permission))
      throw new Denied({ code: 'permission_missing', permission })
    return call.invoke(c, input)
  }

  /** Reads a form. The visitor is admitted again: a revocation is in force while a body is slow. */
  async function readForm(c: Context): Promise<URLSearchParams> {
    if (!FORM_TYPE.test(c.req.header('Content-Type') ?? ''))
      throw inputRefused('body', '', 'must be a form')
    const bytes = await readWhole(bodyOf(c), FORM_TIMEOUT_MS)
    await admitAgain(c, c.get('portcullis.heldUpSinceMs'))
    return new URLSearchParams(new TextDecoder().decode(bytes))
  }

  /** A refusal may come before the caller is known. */
  function render(c: Context, page: ConsolePage) {
    const caller = c.get('portcullis.principal') as Principal | null | undefined
    if (caller === null || caller === undefined) return renderConsole(c, page, undefined)
    const { subject, issuer, tenant, signIn } = caller
    return renderConsole(c, page, { subject, issuer, tenant, name: signIn?.name })
  }

  function page(method: 'GET' | 'POST', path: string, id: string, show: Show): AdminCall {
    const stages = people?.(id === 'act')
    return {
      route: completeRoute({
        ...{ method, path: CONSOLE_PATH + path, permission: CONSOLE_PERMISSION, limits },
        maxBodyBytes: method === 'POST' ? MAX_FORM_BYTES : 0,
      }),
      ...(stages && { stages: { ...stages, arrival: [errorPages, ...(stages.arrival ?? [])] } }),
      handlers: [
        async function showPage(c) {
          const shown = await show(c)
          return shown instanceof Response ? shown : render(c, shown)
        },
      ],
      operation: {
        ...{ method, path: CONSOLE_PATH + path, id: `${id}Console`, tag: 'Console' },
        summary: 'A page of the console',
        ...(path.includes(':id') && { params: z.strictObject({ id: z.string() }) }),
        ...(method === 'POST' && {
          body: {
            schema: z.record(z.string(), z.string()),
            mediaType: 'application/x-www-form-urlencoded',
            example: {},
          },
        }),
        responses: {
          200: { description: 'An HTML page.', schema: () => z.string(), mediaType: 'text/html' },
        },
        problems: [400, 401, 403, 404, 405, 413, 422, 429, 500, 503],
        security: 'operator',
      },
    }
  }

  async function showDecisions(c: Context) {
    const query = queryOf(c)
    const filters = filtersOf(query, now())
    const { cursor } = query
    const summary = await readAudit(c, 'summarizeAudit', summarySchema, filters)
    const events = await readAudit(c, 'queryAudit', auditPage, {
      ...filters,
      ...(cursor !== undefined && { cursor }),
      limit: EVENTS,
    })
    return decisionsPage(summary, events, query)
  }

  return [
    page('GET', '', 'open', async (c) => {
      const query = queryOf(c)
      const { since, until } = filtersOf(query, now())
      return overviewPage(
        await readAudit(c, 'summarizeAudit', summarySchema, {
          ...(since && { since }),
          ...(until && { until }),
        }),
        await read(c, 'readPolicy', policyView),
        query,
      )
    }),
    page('GET', '/decisions', 'decisions', showDecisions),
    page('GET', '/decisions/:id', 'event', async (c) => {
      const id = c.req.param('id') ?? ''
      const found = REQUEST_ID.test(id)
        ? await readAudit(c, 'queryAudit', auditPage, { requestId: id })
        : undefined
      return eventPage(found?.events ?? [], id)
    }),
    page('GET', '/callers', 'callers', async (c) => {
      const query = queryOf(c)
      const { kind = 'subject', value } = query
      const caller =
        value === undefined
          ? undefined
          : await read(c, 'readCaller', callerView, { query: { kind, value } })
      return callerPage(caller, query)
    }),
    page('GET', '/policy', 'policy', async (c) => {
      const shown = await read(c, 'readPolicy', policyView)
      if (shown === undefined)
        throw new Denied({ code: 'permission_missing', permission: 'portcullis:policy:read' })
      return policyPage(shown)
    }),
    page('POST', '/explain', 'explain', async (c) => {
      const form = Object.fromEntries([...(await readForm(c))].filter(([, value]) => value !== ''))
      const { method, path, subject, issuer, tenant, roles } = form
      const caller = subject !== undefined && {
        caller: {
          subject,
          ...(issuer !== undefined && { issuer }),
          ...(tenant !== undefined && { tenant }),
          roles: roles?.split(/\s+/) ?? [],
        },
      }
      const explained = await act(c, 'explainRequest', { body: { method, path, ...caller } })
      return explanationPage(z.parse(explanation, explained), form)
    }),
    page('POST', '/actions', 'act', async (c) => {
      const form = await readForm(c)
      const action = ACTIONS[form.get('action') ?? '']
      const back = form.get('back') ?? CONSOLE_PATH
      const reason = form.get('reason')?.trim() ?? ''
      if (action === undefined || !Object.hasOwn(ACTIONS, form.get('action') ?? ''))
        throw inputRefused('body', '/action', 'must be an action of the console')
      if (!BACK.test(back)) throw inputRefused('body', '/back', 'must be a page of the console')
      if (reason === '') throw inputRefused('body', '/reason', 'must not be empty')
      recordField(c, 'reason', reason)
      await act(c, form.get('action') ?? '', action(form, reason))
      return new Response(null, { status: 303, headers: { ...NO_STORE, Location: back } })
    }),
  ]

  /** Shows a refusal as a page. A navigation without a session leads to the sign-in instead. */
  async function errorPages(...[c, next]: Parameters<MiddlewareHandler>) {
    await next()
    const { error } = c
    if (!(error instanceof Denied || error instanceof Unavailable)) return
    if (!/\btext\/html\b/i.test(c.req.header('Accept') ?? '')) return
    const denial = error instanceof Denied ? error.denial : undefined
    const asksForLogin = denial?.code === 'sign_in_required'
    if (asksForLogin && c.req.method === 'GET') return
    const { status, headers = {}, code, detail } = problemOf(error)
    replaceResponse(
      c,
      await render(c, {
        title: asksForLogin ? 'Sign in again' : `Refused: ${status}`,
        status: status as NonNullable<ConsolePage['status']>,
        headers,
        content: asksForLogin
          ? html`<p>This needs a newer or stronger sign-in. Nothing was changed.</p>
<p><a href="${signInPath({ returnPath: CONSOLE_PATH, prompt: 'login', ...(denial.demand ?? authentication) })}">Sign in</a></p>`
          : html`<p>${detail}</p>
<p>Code: <code>${code}</code></p><p><a href="${CONSOLE_PATH}">Overview</a></p>`,
      }),
    )
  }
}

/** Returns the query without empty values, which forms send, and with the period. */
function queryOf(c: Context): Query {
  const query: Query = Object.fromEntries(
    [...new URL(c.req.url).searchParams].filter(([, value]) => value !== ''),
  )
  return query.since === undefined ? { last: DEFAULT_PERIOD, ...query } : query
}

const FILTERS = ['decision', 'reason', 'route', 'client', 'tenant', 'address', 'status'] as const

/** Returns the query of the operators' calls. */
function filtersOf(query: Query, nowMs: number): Readonly<Record<string, string>> {
  const { q, since, until, last = DEFAULT_PERIOD } = query
  const seconds = Object.hasOwn(PERIODS, last) ? PERIODS[last] : undefined
  const filters: Record<string, string> = {}
  for (const name of FILTERS) {
    const value = query[name]
    if (value !== undefined) filters[name] = value
  }
  if (q !== undefined) filters[REQUEST_ID.test(q) ? 'requestId' : 'subject'] = q
  filters.since = since ?? new Date(nowMs - (seconds ?? 3_600) * 1_000).toISOString()
  if (until !== undefined) filters.until = until
  return filters
}
