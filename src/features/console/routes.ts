/** The routes of the console, and its pages for refusals. */
import type { Context, MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { Denied, Unavailable } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { replaceResponse } from '../../http/replaced-response.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import type { AuthenticationDemand } from '../../policy/definition.ts'
import { completeRoute, OPERATORS_LIMIT } from '../../policy/route.ts'
import type { AdminCall } from '../../routes/admin/call.ts'
import { peopleOf } from '../operators/people.ts'
import { signInPath } from '../sign-in/return-path.ts'
import { createDesks } from './desk.ts'
import {
  CONSOLE_PATH,
  type ConsolePage,
  LIVE_PARAMETER,
  OVERVIEW_STREAM_PATH,
  renderConsole,
  TAIL_PATH,
} from './layout.ts'
import type { PageDefinition } from './page.ts'
import { PAGES } from './pages.ts'

/** Opens the console. What its pages show needs the permission of the operators' call that returns it. */
export const CONSOLE_PERMISSION = 'portcullis:console:open'

/** 64 KiB. */
const MAX_FORM_BYTES = 65_536
const FORM = {
  schema: z.record(z.string(), z.string()),
  mediaType: 'application/x-www-form-urlencoded',
  example: {},
}

/** Streams connect by themselves again, and the overview can load itself. */
const isAttended = ({ pathname, searchParams }: URL): boolean =>
  pathname !== TAIL_PATH &&
  pathname !== OVERVIEW_STREAM_PATH &&
  !searchParams.getAll(LIVE_PARAMETER).includes('1')

/** Creates the routes of all pages, behind the guards of a route. */
export function consoleRoutes(
  parts: FeatureParts,
  authentication: AuthenticationDemand | undefined,
): readonly AdminCall[] {
  const operatorLimit = parts.policy.limits.get(OPERATORS_LIMIT)
  const limits = operatorLimit === undefined ? [] : [operatorLimit]
  const people = peopleOf(parts, { authentication, asksForLogin: true, isAttended })
  const deskOf = createDesks(parts)
  const { origin } = new URL(parts.publicUrl)

  /** Returns the pages of the navigation that this gateway has. */
  function navigation() {
    const calls = new Set(parts.contributed().calls.map(({ operation }) => operation.id))
    return PAGES.flatMap(({ name, path, needs }) =>
      name === undefined || (needs !== undefined && !calls.has(needs)) ? [] : [{ name, path }],
    )
  }

  /** A refusal may come before the caller is known. */
  function render(c: Context, page: ConsolePage) {
    const caller = c.get('portcullis.principal') as Principal | null | undefined
    if (caller === null || caller === undefined)
      return renderConsole(c, page, [], undefined, origin)
    const { subject, issuer, tenant, signIn } = caller
    const visitor = { subject, issuer, tenant, name: signIn?.name }
    return renderConsole(c, page, navigation(), visitor, origin)
  }

  function routeOf({ method = 'GET', path, id, changes = false, show }: PageDefinition): AdminCall {
    const stages = people?.(changes)
    const isForm = method === 'POST'
    return {
      route: completeRoute({
        ...{ method, path: CONSOLE_PATH + path, permission: CONSOLE_PERMISSION, limits },
        maxBodyBytes: isForm ? MAX_FORM_BYTES : 0,
      }),
      ...(stages && { stages: { ...stages, arrival: [errorPages, ...(stages.arrival ?? [])] } }),
      handlers: [
        async function showPage(c) {
          const shown = await show(deskOf(c))
          return shown instanceof Response ? shown : render(c, shown)
        },
      ],
      operation: {
        ...{ method, path: CONSOLE_PATH + path, id: `${id}Console`, tag: 'Console' },
        summary: 'A page of the console',
        ...(path.includes(':id') && { params: z.strictObject({ id: z.string() }) }),
        ...(isForm && { body: FORM }),
        responses: {
          200: { description: 'An HTML page.', schema: () => z.string(), mediaType: 'text/html' },
        },
        problems: [400, 401, 403, 404, 405, 413, 422, 429, 500, 503],
        security: 'operator',
      },
    }
  }

  return PAGES.map(routeOf)

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
          : html`<p>${detail}</p>${denial?.code === 'invalid_input' ? mistakes(denial.errors) : ''}
<p>Code: <code>${code}</code></p><p><a href="${CONSOLE_PATH}">Overview</a></p>`,
      }),
    )
  }
}

const mistakes = (errors: readonly { readonly path: string; readonly message: string }[]) =>
  html`<ul>${errors.map(({ path, message }) => html`<li><code>${path.slice(1)}</code> ${message}</li>`)}</ul>`
