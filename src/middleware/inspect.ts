/** The `inspect` stage: checks the query and the body of a request before it is processed. */
import type { Context } from 'hono'
import type { Authorizer } from '../access/permissions.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import { Denied } from '../errors.ts'
import { targetOf } from '../http/path.ts'
import { createCallGuard, type IsPermitted } from '../inspection/call-guard.ts'
import {
  DEFAULT_INSPECTION,
  DEFAULT_MAX_BATCH,
  type InspectDefinition,
} from '../inspection/definition.ts'
import { inspectJson } from '../inspection/json.ts'
import { parseCalls } from '../inspection/json-rpc.ts'
import type { ParametersSeen, RequestScan, SignatureJudge } from '../inspection/judge.ts'
import type { InspectionLimits } from '../inspection/limits.ts'
import { INSPECTED_TYPES, inspectedMedia, TYPES_WITH_MULTIPART } from '../inspection/media.ts'
import { inspectParameters } from '../inspection/parameters.ts'
import { refuseText } from '../inspection/text.ts'
import type { Denial } from '../problems/reasons.ts'
import { inEnglish } from '../validators/english.ts'
import { inspectSchema, permissionsIn } from '../validators/inspect.ts'
import { type BodyVariables, bodyOf, callerOf, observe } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'
import { isEncoded, readBodyBytes, readBodyText, readJsonText } from './validate.ts'

export interface InspectOptions extends InspectDefinition {
  /** Required if a call needs a permission. */
  readonly authorizer?: Authorizer
}

/** Refusals of this stage that observe mode does not enforce, besides `malformed_request`. */
const OBSERVABLE: ReadonlySet<Denial['code']> = new Set<Denial['code']>([
  'call_refused',
  'permission_missing',
  'invalid_input',
  'unsupported_media_type',
])

type InspectedContext = Context<{ Variables: BodyVariables }>

/**
 * Inspects the query and the body, and forwards exactly the inspected bytes. Throws `Denied`:
 * - `malformed_request`: broken encodings, control characters, repeated parameters or names, names
 *   of an object's prototype, too much depth, too many names, too long strings.
 * - `unsupported_media_type`: a body that it cannot inspect. It inspects multipart bodies only with
 *   `signatures`, which contain the parser.
 * - `signature_matched`: an attack signature, with `signatures({ mode: 'enforce' })`.
 *
 * With `jsonRpc` the body must be JSON-RPC 2.0. One bad message refuses its batch:
 * - `call_refused`: a method or tool that the definition does not name.
 * - `permission_missing`: a call without its permission.
 * - `invalid_input`: arguments that do not match their schema.
 *
 * In observe mode it refuses only an incomplete body, and an anonymous caller of a call that needs
 * a permission (401). Needs `limitBody` before it, and `authenticate` and `admit` for permissions.
 * Inspects headers only for signatures, and no responses.
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
  const parsed = inspectSchema.safeParse(definition, inEnglish())
  if (!parsed.success) throw new TypeError(`inspect: ${parsed.error.issues[0]?.message}`)
  const { jsonRpc, mode = 'enforce', signatures, ...bounds } = definition
  const permissions = permissionsIn(jsonRpc)
  authorizer?.declare?.(permissions)
  if (authorizer === undefined && permissions.length > 0)
    throw new TypeError('inspect: an `authorizer` is required to check permissions')
  const limits: InspectionLimits = { ...DEFAULT_INSPECTION, ...bounds }
  const maxBatch = jsonRpc?.maxBatch ?? DEFAULT_MAX_BATCH
  const guardCalls = jsonRpc && createCallGuard(jsonRpc)
  const judge = signatures === false ? undefined : signatures

  async function guardForm(c: InspectedContext, scan: RequestScan | undefined): Promise<void> {
    const seen: ParametersSeen = { names: new Set(), count: 0, scan }
    inspectParameters(sliceQuery(c.req.url), 'query', limits, seen)
    if (guardCalls !== undefined) {
      const body = inspectJson(await readJsonText(c), limits, scan)
      guardCalls(parseCalls(body, maxBatch), permittedTo(c, authorizer))
    } else if (bodyOf(c, 'inspect') !== null) await inspectBody(c, limits, seen, judge)
  }

  return createMiddleware<{ Variables: BodyVariables }>(async function inspect(c, next) {
    const scan = judge?.begin(c.req.url, receivedHeaders(c))
    try {
      await guardForm(c, scan)
    } catch (error) {
      if (mode === 'enforce' || !isObservable(error)) throw error
      observe(c, reasonOfDenial(error.denial))
    }
    if (judge !== undefined && scan !== undefined && scan.verdict !== 0) {
      for (const denial of judge.denialsOf(scan.verdict)) {
        if (mode === 'enforce' && judge.mode === 'enforce') throw new Denied(denial)
        observe(c, reasonOfDenial(denial))
      }
    }
    await next()
  })
}

/** Whether observe mode may skip a refusal. An incomplete body cannot be forwarded. */
function isObservable(error: unknown): error is Denied {
  if (!(error instanceof Denied)) return false
  const { denial } = error
  if (denial.code === 'malformed_request') return denial.check !== 'body_incomplete'
  return OBSERVABLE.has(denial.code)
}

/** Returns the check of permissions for the caller. It throws `Denied` for an anonymous caller. */
export function permittedTo(c: Context, authorizer: Authorizer | undefined): IsPermitted {
  return (permission) => {
    const principal = callerOf(c, 'inspect')
    if (principal === null) throw new Denied({ code: 'missing_token' })
    return authorizer?.(principal, permission) === true
  }
}

function sliceQuery(url: string): string {
  const target = targetOf(url)
  const start = target.indexOf('?')
  return start === -1 ? '' : target.slice(start + 1)
}

async function inspectBody(
  c: InspectedContext,
  limits: InspectionLimits,
  seen: ParametersSeen,
  judge: SignatureJudge | undefined,
): Promise<void> {
  const contentType = receivedHeaders(c).get('content-type')
  const inspectMultipart = isEncoded(c) ? undefined : judge?.multipartInspection(contentType)
  if (inspectMultipart !== undefined) return inspectMultipart(await readBodyBytes(c), limits, seen)
  const media = inspectedMedia(contentType)
  if (media === undefined || isEncoded(c))
    throw new Denied({
      code: 'unsupported_media_type',
      expected: judge === undefined ? INSPECTED_TYPES : TYPES_WITH_MULTIPART,
      encoded: isEncoded(c),
    })
  const text = await readBodyText(c)
  switch (media) {
    case 'json':
      inspectJson(text, limits, seen.scan)
      break
    case 'form':
      inspectParameters(text, 'body', limits, seen)
      break
    case 'text':
      refuseText(text, 'body')
      seen.scan?.add(text)
  }
}
