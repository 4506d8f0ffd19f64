/** The routes of the console, and its pages for refusals. */
import type { Context, MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { Denied, Unavailable } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { replaceResponse } from '../../http/replaced-response.ts'
import { callerOf } from '../../middleware/context.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import type { AuthenticationDemand } from '../../policy/definition.ts'
import { completeRoute, OPERATORS_LIMIT } from '../../policy/route.ts'
import type { AdminCall } from '../../routes/admin/call.ts'
import { peopleOf } from '../operators/people.ts'
import { signInPath } from '../sign-in/return-path.ts'
import { createDesks } from './desk.ts'
import {
  BACK,
  CONSOLE_PATH,
  type ConsolePage,
  LIVE_PARAMETER,
  type NavigationItem,
  OVERVIEW_STREAM_PATH,
  reference,
  renderConsole,
  TAIL_PATH,
} from './layout.ts'
import { DeniedWithPage } from './mistakes.ts'
import { createNotices, forgetNotice } from './notices.ts'
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

type Needs = PageDefinition['needs']

/** Creates the checks of pages, and their navigation. */
function createMenu({ authorizer, contributed }: Pick<FeatureParts, 'authorizer' | 'contributed'>) {
  /** Returns the permissions of the calls that the gateway has, each once. */
  function permissionsOf(needs: readonly string[]): readonly string[] {
    const { calls } = contributed()
    const found = needs.flatMap(
      (id) => calls.find(({ operation }) => operation.id === id)?.route.permission ?? [],
    )
    return [...new Set(found)]
  }

  const mayOpen = (visitor: Principal, needs: Needs): boolean =>
    needs === undefined || permissionsOf(needs).some((one) => authorizer(visitor, one))

  return {
    permissionsOf,
    /** Returns the pages that the gateway has, and of which the visitor may read something. */
    navigationOf: (visitor: Principal, pages: readonly PageDefinition[]): NavigationItem[] =>
      pages.flatMap(({ name, path, needs, isOfPlatform = false }) =>
        name === undefined ||
        (isOfPlatform && visitor.tenant !== undefined) ||
        !mayOpen(visitor, needs)
          ? []
          : [{ name, path }],
      ),
    /** Throws `Denied` if the gateway has none of the calls, or the visitor may make none. */
    requireOne(c: Context, needs: Needs): void {
      if (needs === undefined) return
      const visitor = callerOf(c, 'console')
      const [permission] = permissionsOf(needs)
      if (permission === undefined) throw new Denied({ code: 'not_found' })
      if (visitor === null || !mayOpen(visitor, needs))
        throw new Denied({ code: 'permission_missing', permission })
    },
  }
}

/** Creates the routes of all pages, behind the guards of a route. */
export function consoleRoutes(
  parts: FeatureParts,
  authentication: AuthenticationDemand | undefined,
): readonly AdminCall[] {
  const operatorLimit = parts.policy.limits.get(OPERATORS_LIMIT)
  const limits = operatorLimit === undefined ? [] : [operatorLimit]
  const people = peopleOf(parts, { authentication, asksForLogin: true, isAttended })
  const deskOf = createDesks(parts)
  const notices = createNotices(parts.redis)
  const menu = createMenu(parts)
  const { origin } = new URL(parts.publicUrl)

  /** A refusal may come before the caller is known. */
  function render(c: Context, page: ConsolePage) {
    const caller = c.get('portcullis.principal') as Principal | null | undefined
    if (caller === null || caller === undefined)
      return renderConsole(c, page, [], undefined, origin)
    const { subject, issuer, tenant, signIn } = caller
    const visitor = { subject, issuer, tenant, name: signIn?.name }
    return renderConsole(c, page, menu.navigationOf(caller, PAGES), visitor, origin)
  }

  /** Adds what the last action has done, once. */
  async function withNotice(c: Context, page: ConsolePage): Promise<ConsolePage> {
    const caller = callerOf(c, 'withNotice')
    if (page.notice !== undefined || caller === null) return page
    const notice = await notices.take(caller, c.req.header('Cookie'))
    if (notice === undefined) return page
    return { ...page, notice, headers: { ...page.headers, 'Set-Cookie': forgetNotice } }
  }

  function routeOf(definition: PageDefinition): AdminCall {
    const { method = 'GET', path, id, changes = false, needs, show } = definition
    const stages = people?.(changes)
    const isForm = method === 'POST'
    return {
      route: completeRoute({
        ...{ method, path: CONSOLE_PATH + path, permission: CONSOLE_PERMISSION, limits },
        maxBodyBytes: isForm ? MAX_FORM_BYTES : 0,
      }),
      ...(stages && {
        stages: { ...stages, arrival: [errorPagesOf(definition), ...(stages.arrival ?? [])] },
      }),
      handlers: [
        async function showPage(c) {
          menu.requireOne(c, needs)
          const shown = await show(deskOf(c))
          return shown instanceof Response ? shown : render(c, await withNotice(c, shown))
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
  function errorPagesOf({ needs = [], absent }: PageDefinition): MiddlewareHandler {
    return async function errorPages(c, next) {
      await next()
      const { error } = c
      if (!(error instanceof Denied || error instanceof Unavailable)) return
      if (!/\btext\/html\b/i.test(c.req.header('Accept') ?? '')) return
      const denial = error instanceof Denied ? error.denial : undefined
      const asksForLogin = denial?.code === 'sign_in_required'
      if (asksForLogin && c.req.method === 'GET') return
      const { status, headers = {}, code, detail } = problemOf(error)
      const answer = { status: status as NonNullable<ConsolePage['status']>, headers }
      if (error instanceof DeniedWithPage) {
        replaceResponse(c, await render(c, { ...error.page, ...answer }))
        return
      }
      const back = pageBefore(c)
      const permissions = menu.permissionsOf(needs)
      const isAbsent =
        denial?.code === 'not_found' && absent !== undefined && permissions.length === 0
      const text = isAbsent
        ? absent
        : denial?.code === 'permission_missing' && permissions.length > 1
          ? oneOf(permissions)
          : detail
      replaceResponse(
        c,
        await render(c, {
          ...answer,
          title: asksForLogin ? 'Sign in again' : `Refused: ${status}`,
          content: asksForLogin
            ? html`<p>This needs a newer or stronger sign-in. Nothing was changed.</p>
<p><a href="${signInPath({ returnPath: back ?? CONSOLE_PATH, prompt: 'login', ...(denial.demand ?? authentication) })}">Sign in</a></p>${reference(c)}`
            : html`<p>${text}</p>${denial?.code === 'invalid_input' ? mistakes(denial.errors) : ''}
<p>Code: <code>${code}</code></p>${reference(c)}<p>${back === undefined ? '' : html`<a href="${back}">Back</a> `}<a href="${CONSOLE_PATH}">Overview</a></p>`,
        }),
      )
    }
  }

  /** Returns the page of the console with the form or link that led here, as the browser says. Undefined: none. */
  function pageBefore(c: Context): string | undefined {
    const sent = URL.parse(c.req.header('Referer') ?? '')
    if (sent === null || sent.origin !== origin) return undefined
    const path = sent.pathname + sent.search
    const isForm = PAGES.some(
      (page) => page.method === 'POST' && CONSOLE_PATH + page.path === sent.pathname,
    )
    return BACK.test(path) && !isForm ? path : undefined
  }
}

const oneOf = (permissions: readonly string[]): string =>
  `This page needs one of these permissions: ${permissions.join(', ')}.`

const mistakes = (errors: readonly { readonly path: string; readonly message: string }[]) =>
  html`<ul>${errors.map(({ path, message }) => html`<li><code>${path.slice(1)}</code> ${message}</li>`)}</ul>`
