/** Runs operators' calls for the visitor of a page. */
import type { Context } from 'hono'
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { Denied } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { bodyOf, callerOf, recordField } from '../../middleware/context.ts'
import { createReadmission } from '../../middleware/readmit.ts'
import { readWhole } from '../../middleware/validate.ts'
import type { CallInput } from '../../routes/admin/call.ts'
import { inputRefused } from '../../routes/admin/input.ts'
import { createHeldStreams } from './held-streams.ts'
import { createNotices } from './notices.ts'
import type { Desk } from './page.ts'

const FORM_TIMEOUT_MS = 3_000
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i

/** Returns a function that creates the desk of a request. */
export function createDesks(parts: FeatureParts): (c: Context) => Desk {
  const { admission, auditDb, authorizer, contributed, now } = parts
  const notices = createNotices(parts.redis)
  const names = {
    roles: [...parts.policy.roles.keys()],
    scopes: [...new Set(parts.policy.routes.flatMap(({ permission }) => permission ?? []))].sort(),
    issuers: parts.issuers,
  }
  /** An operator of a tenant learns nothing of the policy, nor of the issuers of other tenants. */
  const namesFor = (tenant: string | undefined) =>
    tenant === undefined ? names : { roles: [], scopes: [], issuers: [] }
  const admitAgain = createReadmission({ admission, strict: true })
  const holdStream = createHeldStreams(now)
  const find = (id: string) => contributed().calls.find(({ operation }) => operation.id === id)

  return function deskOf(c) {
    const caller = () => callerOf(c, 'console')

    /** Throws `Denied` if the visitor may not make the call. */
    function permitted(id: string) {
      const call = find(id)
      const visitor = caller()
      const permission = call?.route.permission
      if (call?.invoke === undefined || visitor === null || permission === undefined)
        throw new Denied({ code: 'not_found' })
      if (!authorizer(visitor, permission))
        throw new Denied({ code: 'permission_missing', permission })
      return call.invoke
    }

    function may(id: string): boolean {
      try {
        permitted(id)
        return true
      } catch (error) {
        if (error instanceof Denied) return false
        throw error
      }
    }

    const beganMs = now()
    const desk: Desk = {
      query: queryOf(c),
      nowMs: beganMs,
      param: (name) => c.req.param(name) ?? '',
      may,
      async read(id, schema, input = {}) {
        if (!may(id)) return undefined
        try {
          return z.parse(schema, await permitted(id)(c, input))
        } catch (error) {
          // Such as a call that no operator of a tenant may make.
          if (error instanceof Denied && error.denial.code === 'permission_missing')
            return undefined
          throw error
        }
      },
      readAudit: async (id, schema, input) =>
        auditDb === undefined ? undefined : desk.read(id, schema, input),
      act: (id: string, input: CallInput) => permitted(id)(c, input),
      async form() {
        if (!FORM_TYPE.test(c.req.header('Content-Type') ?? ''))
          throw inputRefused('body', '', 'must be a form')
        const bytes = await readWhole(bodyOf(c), FORM_TIMEOUT_MS)
        await admitAgain(c, c.get('portcullis.heldUpSinceMs'))
        return new URLSearchParams(new TextDecoder().decode(bytes))
      },
      lastEventId: c.req.header('Last-Event-ID'),
      holdStream(untilMs) {
        const visitor = caller()
        return holdStream(JSON.stringify([visitor?.issuer, visitor?.subject]), untilMs)
      },
      readmit: () => admitAgain(c, beganMs),
      recordReason: (reason) => recordField(c, 'reason', reason),
      names: namesFor(caller()?.tenant),
      async leadTo(path, notice) {
        const visitor = caller()
        const cookie = visitor === null ? undefined : await notices.put(visitor, notice)
        if (cookie === undefined)
          return {
            title: 'Done',
            notice,
            content: html`<p><a href="${path}">Back</a></p>`,
          }
        const headers = { ...NO_STORE, Location: path, 'Set-Cookie': cookie }
        return new Response(null, { status: 303, headers })
      },
    }
    return desk
  }
}

const queryOf = (c: Context) =>
  Object.fromEntries([...new URL(c.req.url).searchParams].filter(([, value]) => value !== ''))
