/** The `inspect` stage: what is in a request, before anybody acts on it. */
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { reasonOfDenial } from '../audit/reason.ts'
import type { Authorizer } from '../authorization/permissions.ts'
import { type BodyVariables, bodyOf, callerOf } from '../context.ts'
import { type Denial, Denied } from '../errors.ts'
import { createCallGuard, type IsPermitted } from '../inspection/call-guard.ts'
import {
  DEFAULT_INSPECTION,
  DEFAULT_MAX_BATCH,
  type InspectDefinition,
  type InspectionLimits,
} from '../inspection/definition.ts'
import { inspectJson } from '../inspection/json.ts'
import { callsOf } from '../inspection/json-rpc.ts'
import { INSPECTED_TYPES, inspectedMedia } from '../inspection/media.ts'
import { inspectParameters, type ParametersSeen } from '../inspection/parameters.ts'
import { createSignatureJudge } from '../inspection/signatures/judge.ts'
import type { TextTaker } from '../inspection/signatures/text-taker.ts'
import { refuseText } from '../inspection/text.ts'
import { demandsPermission, inspectSchema } from '../validators/inspect.ts'
import { isJsonMediaType } from '../validators/media-type.ts'
import { targetOf } from '../validators/path.ts'
import { observe } from './observe.ts'
import { bodyTextOf } from './validate.ts'

export interface InspectOptions extends InspectDefinition {
  /** From `createAuthorizer(policy.roles)`; needed where a call demands a permission. */
  readonly authorizer?: Authorizer
}

/** What this stage refuses by its own judgement, besides what is malformed. */
const OBSERVABLE: ReadonlySet<Denial['code']> = new Set<Denial['code']>([
  'call_refused',
  'permission_missing',
  'input_invalid',
  'media_type_unsupported',
])

type InspectedContext = Context<{ Variables: BodyVariables }>

/**
 * Looks into query and body and sends on the very bytes that it looked at. Refused with `Denied`
 * are broken encodings, control characters, a parameter or a name that stands twice, names of an
 * object's prototype, too much depth, too many names, too long strings (`request_malformed`), and a
 * body that it cannot look into (`media_type_unsupported`). With `jsonRpc` the body must be JSON-RPC
 * 2.0, and a method or tool that is not named is refused (`call_refused`), one without its
 * permission as well (`permission_missing`), and arguments that do not match their schema
 * (`input_invalid`); one bad message refuses its batch. Needs `limitBody` before it, and
 * `authenticate` and `admit` for permissions.
 *
 * What passes is searched for signatures of attacks: noted for the audit event (`observe`), or
 * refused (`signature_matched`) with `signatures: { mode: 'enforce' }`. With `mode: 'observe'` nothing
 * of all this is refused but a body that broke off; it is noted.
 *
 * Does NOT look into headers, or at what the origin answers. Throws a `TypeError` when built with
 * options that are none.
 *
 * @example
 * ```ts
 * app.post('/mcp', limitBody({ maxBytes: 65_536 }), authenticate({ verifier }), inspect({
 *   authorizer,
 *   jsonRpc: {
 *     methods: { initialize: true, 'tools/list': true, 'tools/call': true },
 *     tools: { search: { arguments: z.strictObject({ text: z.string() }) } },
 *   },
 * }), handler)
 * ```
 */
export const inspect = ({ authorizer, ...definition }: InspectOptions) => {
  const parsed = inspectSchema.safeParse(definition)
  if (!parsed.success) throw new TypeError(`inspect: ${parsed.error.issues[0]?.message}`)
  const { jsonRpc, mode = 'enforce', signatures = {}, ...bounds } = definition
  if (authorizer === undefined && demandsPermission(jsonRpc))
    throw new TypeError('inspect: permissions need an authorizer')
  const limits: InspectionLimits = { ...DEFAULT_INSPECTION, ...bounds }
  const maxBatch = jsonRpc?.maxBatch ?? DEFAULT_MAX_BATCH
  const guardCalls = jsonRpc && createCallGuard(jsonRpc)
  const judge = signatures === false ? undefined : createSignatureJudge(signatures)

  async function guardForm(c: InspectedContext, texts: TextTaker | undefined): Promise<void> {
    const seen: ParametersSeen = { names: new Set(), count: 0, texts }
    inspectParameters(queryOf(c.req.url), 'query', limits, seen)
    if (guardCalls !== undefined) {
      const body = await inspectedJson(c, limits, texts)
      guardCalls(callsOf(body, maxBatch), permittedTo(c, authorizer))
    } else if (bodyOf(c) !== null) await inspectBody(c, limits, seen)
  }

  return createMiddleware<{ Variables: BodyVariables }>(async function inspect(c, next) {
    const texts = judge?.begin(c.req.url)
    try {
      await guardForm(c, texts)
    } catch (error) {
      if (mode === 'enforce' || !isObservable(error)) throw error
      observe(c, reasonOfDenial(error.denial))
    }
    if (judge !== undefined && texts !== undefined && texts.verdict !== 0) {
      for (const denial of judge.denialsOf(texts.verdict)) {
        if (mode === 'enforce' && judge.mode === 'enforce') throw new Denied(denial)
        observe(c, reasonOfDenial(denial))
      }
    }
    await next()
  })
}

/** Whether a refusal is this stage's own; a body that broke off cannot be sent on. */
function isObservable(error: unknown): error is Denied {
  if (!(error instanceof Denied)) return false
  const { denial } = error
  if (denial.code === 'request_malformed') return denial.check !== 'body_incomplete'
  return OBSERVABLE.has(denial.code)
}

/** Asks the authorizer about the caller; an anonymous one needs a token first (401). */
function permittedTo(c: InspectedContext, authorizer: Authorizer | undefined): IsPermitted {
  return (permission) => {
    const principal = callerOf(c)
    if (principal === null) throw new Denied({ code: 'token_missing' })
    return authorizer?.(principal, permission) === true
  }
}

/** The raw query of a URL, without its `?`. */
function queryOf(url: string): string {
  const target = targetOf(url)
  const start = target.indexOf('?')
  return start === -1 ? '' : target.slice(start + 1)
}

async function inspectedJson(
  c: InspectedContext,
  limits: InspectionLimits,
  texts: TextTaker | undefined,
): Promise<unknown> {
  const expected = 'application/json'
  if (!isJsonMediaType(c.req.header('Content-Type')) || isEncoded(c))
    throw new Denied({ code: 'media_type_unsupported', expected })
  return inspectJson(await bodyTextOf(c), limits, texts)
}

async function inspectBody(
  c: InspectedContext,
  limits: InspectionLimits,
  seen: ParametersSeen,
): Promise<void> {
  const media = inspectedMedia(c.req.header('Content-Type'))
  if (media === undefined || isEncoded(c))
    throw new Denied({ code: 'media_type_unsupported', expected: INSPECTED_TYPES })
  const text = await bodyTextOf(c)
  switch (media) {
    case 'json':
      inspectJson(text, limits, seen.texts)
      break
    case 'form':
      inspectParameters(text, 'body', limits, seen)
      break
    case 'text':
      refuseText(text, 'body')
      seen.texts?.take(text)
  }
}

/** A compressed body would be looked into by nobody but the origin. */
function isEncoded(c: InspectedContext): boolean {
  return (c.req.header('Content-Encoding') ?? 'identity') !== 'identity'
}
