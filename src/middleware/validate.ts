/** The `validate` stage: input that matches its schema, or 422 with every finding. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type * as z from 'zod'
import { ADMITTED_FOR_MS } from '../admission/admission.ts'
import { type BodyVariables, bodyOf } from '../context.ts'
import { Denied, type InputError } from '../errors.ts'
import type { InputSchemas } from '../policy-definition.ts'
import { withDeadline } from '../timers.ts'
import { findingsOf, MAX_FINDINGS, pointer } from '../validators/findings.ts'
import { JsonRefused, parseStrictJson } from '../validators/json.ts'
import { isJsonMediaType } from '../validators/media-type.ts'
import { queryParameters } from '../validators/query.ts'
import { dropsUnknownKeys } from '../validators/strictness.ts'

export interface ValidateOptions extends InputSchemas {
  /** Nesting of the body beyond which it is refused unread. Default 32. */
  readonly maxDepth?: number
}

const DEFAULT_MAX_DEPTH = 32
type Environment = { Variables: BodyVariables }

/** For the whole body: these are small, and a stalled upload must not hold its request for ever. */
const READ_TIMEOUT_MS = 15_000

/**
 * Checks params, query, headers and JSON body against zod schemas and sends on the very bytes that
 * were checked. Refused: duplicated query parameters and member names, anything but UTF-8 JSON,
 * unknown keys (schemas must be `z.strictObject`, or say `z.looseObject`). Findings name paths, not
 * the values found there. Does not check a body that has no schema. Needs `limitBody` before it.
 *
 * @example
 * ```ts
 * app.post('/orders', limitBody({ maxBytes: 65_536 }), validate({ body: newOrder }), handler)
 * ```
 */
export const validate = ({
  params,
  query,
  headers,
  body,
  maxDepth,
}: ValidateOptions): MiddlewareHandler<Environment> => {
  for (const [name, schema] of Object.entries({ params, query, body })) {
    if (schema !== undefined && dropsUnknownKeys(schema)) {
      throw new TypeError(
        `validate: the ${name} schema drops unknown keys, which would still reach the origin; ` +
          'use z.strictObject (or z.looseObject to let them pass)',
      )
    }
  }

  function findingsBesideBody(c: Context): InputError[] {
    const errors: InputError[] = []
    if (params !== undefined) check('params', params, c.req.param(), errors)
    if (query !== undefined) check('query', query, queryOf(c, errors), errors)
    if (headers !== undefined) check('headers', headers, c.req.header(), errors)
    return errors
  }

  async function validateAll(c: Context<Environment>, next: Next, schema: z.ZodType) {
    const errors = findingsBesideBody(c)
    check('body', schema, await readJson(c, maxDepth ?? DEFAULT_MAX_DEPTH), errors)
    refuse(errors)
    await next()
  }

  return function validate(c, next) {
    if (body !== undefined) return validateAll(c, next, body)
    refuse(findingsBesideBody(c))
    return next()
  }
}

function refuse(errors: readonly InputError[]): void {
  if (errors.length > 0) throw new Denied({ code: 'input_invalid', errors })
}

function check(
  where: InputError['in'],
  schema: z.ZodType,
  value: unknown,
  errors: InputError[],
): void {
  const found = findingsOf(where, schema, value)
  if (found.length > 0) errors.push(...found.slice(0, MAX_FINDINGS - errors.length))
}

/** Query parameters by name; each may stand once, because origins differ in which one they take. */
function queryOf(c: Context, errors: InputError[]): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  const { url } = c.req
  const start = url.indexOf('?')
  if (start === -1) return query
  for (const [name, value] of queryParameters(url.slice(start + 1))) {
    if (name in query && errors.length < MAX_FINDINGS)
      errors.push({ in: 'query', path: pointer([name]), message: 'Must not be given twice' })
    query[name] = value
  }
  return query
}

/** Reads the body once, checks that it is JSON in one reading, and leaves it to be sent on. */
async function readJson(
  c: Context<{ Variables: BodyVariables }>,
  maxDepth: number,
): Promise<unknown> {
  const encoding = c.req.header('Content-Encoding')
  if (!isJsonMediaType(c.req.header('Content-Type')) || (encoding ?? 'identity') !== 'identity')
    throw new Denied({ code: 'media_type_unsupported', expected: 'application/json' })
  const text = await bodyTextOf(c)
  try {
    return parseStrictJson(text, { maxDepth })
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    throw new Denied({ code: 'request_malformed', check: `body_${error.check}` })
  }
}

/**
 * The whole body as text, whose bytes are kept to be sent on. Throws `Denied` where they are not
 * UTF-8.
 */
export async function bodyTextOf(c: Context<{ Variables: BodyVariables }>): Promise<string> {
  const startMs = Date.now()
  const bytes = await wholeOf(bodyOf(c))
  if (Date.now() - startMs > ADMITTED_FOR_MS) c.set('heldUpSinceMs', startMs)
  c.set('body', bytes)
  try {
    // ignoreBOM keeps a byte order mark, which is then no JSON: some origins skip it, some fail.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Denied({ code: 'request_malformed', check: 'body_encoding' })
  }
}

/**
 * All of a body, which `limitBody` has bounded, within `timeoutMs` milliseconds (default 15 s).
 * Throws `Denied`: one that breaks off or stalls is its sender's doing: 400 to whoever is left, not
 * our 500.
 */
export async function wholeOf(
  body: BodyVariables['body'],
  timeoutMs = READ_TIMEOUT_MS,
): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body
  try {
    return await withDeadline(new Response(body).bytes(), timeoutMs)
  } catch (error) {
    if (error instanceof Denied) throw error
    throw new Denied({ code: 'request_malformed', check: 'body_incomplete' })
  }
}
