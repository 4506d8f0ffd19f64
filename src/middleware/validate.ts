/** The `validate` stage: input that matches its schema, or 422 with the findings. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { $ZodType } from 'zod/v4/core'
import { isHeldUp } from '../access/admission/admission.ts'
import { Denied } from '../errors.ts'
import { findInexact, isExact } from '../http/exact-numbers.ts'
import { hasCoding, isJsonType, utf8MediaType } from '../http/media-type.ts'
import { queryParameters } from '../http/query.ts'
import { JsonRefused, parseStrictJson } from '../http/strict-json.ts'
import { withDeadline } from '../isolate/timers.ts'
import type { InputSchemas } from '../policy/definition.ts'
import type { InputError } from '../problems/reasons.ts'
import { checked, MAX_FINDINGS, pointer, type RuleOf } from '../validators/findings.ts'
import { repeatableNames } from '../validators/repeatable.ts'
import { dropsUnknownKeys } from '../validators/strictness.ts'
import { type BodyVariables, bodyOf } from './context.ts'
import { readEarlier } from './early-body.ts'
import { receivedHeaders } from './request-headers.ts'

type Environment = { Variables: BodyVariables }

export interface ValidateOptions extends InputSchemas {
  /** The maximum nesting of the body. Default 32. */
  readonly maxDepth?: number
  /**
   * Whether the received input is forwarded as it is. Then no schema may drop unknown keys: they
   * would be forwarded unchecked. False for handlers that use `c.req.valid`. Default true.
   */
  readonly forwards?: boolean
  /** Adds the rules of the schema to findings as data. Default: they have none. */
  readonly ruleOf?: RuleOf | undefined
}

const DEFAULT_MAX_DEPTH = 32
const JSON_TYPE = 'application/json'
/** zod drops this name from records and open objects without a check, and the origin would receive it. */
const UNCHECKED_NAME = '__proto__'

/** For the whole body: a stalled upload must not hold its request forever. */
const READ_TIMEOUT_MS = 15_000

/**
 * Checks params, query, headers and JSON body against zod schemas, and forwards exactly the checked
 * bytes. Refuses duplicate query parameters, except those that the schema reads as `z.array`, a query with
 * `;` or without percent-encoded UTF-8 (unless `forwards` is false), duplicate member names, the name `__proto__`,
 * and anything but UTF-8 JSON. Findings contain paths, not values. A number
 * that a schema reads must be exact: if it has more digits than a double can hold, the origin could
 * read another number. A body may be absent if its schema is optional. Throws a `TypeError` for a
 * schema that drops unknown keys, unless `forwards` is false. Does NOT check a body that has no
 * schema. Needs `limitBody` before it.
 *
 * `c.req.valid('param' | 'query' | 'header' | 'json')` returns the output of the schema: with its
 * defaults and transformations. `c.req.json()` and `c.req.text()` read the body as it was received.
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
  maxDepth = DEFAULT_MAX_DEPTH,
  forwards = true,
  ruleOf,
}: ValidateOptions): MiddlewareHandler<Environment> => {
  for (const [name, schema] of Object.entries({ params, query, body })) {
    if (forwards && schema !== undefined && dropsUnknownKeys(schema)) {
      throw new TypeError(
        `validate: ${name} drops unknown keys, which reach the origin; ` +
          'use z.strictObject or z.looseObject',
      )
    }
  }

  const isOptional = body?._zod.optin === 'optional'
  const repeatable = query && repeatableNames(query)

  function checkBesideBody(c: Context): InputError[] {
    const errors: InputError[] = []
    if (params !== undefined) check(c, 'params', params, c.req.param(), errors, ruleOf)
    if (query !== undefined && repeatable !== undefined) {
      const read = readQuery(c, repeatable, forwards, errors)
      check(c, 'query', query, read, errors, ruleOf)
    }
    if (headers !== undefined)
      check(c, 'headers', headers, Object.fromEntries(receivedHeaders(c)), errors, ruleOf)
    return errors
  }

  async function checkAll(c: Context<Environment>, next: Next, schema: $ZodType) {
    const errors = checkBesideBody(c)
    const isAbsent = isOptional && !isEncoded(c) && (await readBodyText(c)) === ''
    check(c, 'body', schema, isAbsent ? undefined : await readJson(c, maxDepth), errors, ruleOf)
    refuse(errors)
    await next()
  }

  return function validate(c, next) {
    if (body !== undefined) return checkAll(c, next, body)
    refuse(checkBesideBody(c))
    return next()
  }
}

function refuse(errors: readonly InputError[]): void {
  if (errors.length > 0)
    throw new Denied({ code: 'invalid_input', errors: errors.slice(0, MAX_FINDINGS) })
}

/** The names of the parts in Hono. */
const TARGETS = { params: 'param', query: 'query', headers: 'header', body: 'json' } as const

/** Adds the findings to `errors`, or the parsed value to the request. */
function check(
  c: Context,
  where: InputError['in'],
  schema: $ZodType,
  received: unknown,
  errors: InputError[],
  ruleOf: RuleOf | undefined,
): void {
  const { findings, value } = checked(where, schema, received, '', ruleOf)
  errors.push(...findings)
  if (findings.length === 0) c.req.addValidatedData(TARGETS[where], value as object)
}

/** Creates an object without inherited members. V8 stores those of `Object.create(null)` in a slower way. */
function NoMembers() {}
NoMembers.prototype = Object.create(null)
const Query = NoMembers as unknown as new () => Record<string, string | string[]>

/**
 * A duplicate is a finding, because origins differ in which value they use. So is a query which is
 * forwarded, and which they split or decode in different ways. A parameter that the schema reads as a list is always a list.
 */
function readQuery(
  c: Context,
  repeatable: ReadonlySet<string>,
  forwards: boolean,
  errors: InputError[],
): Record<string, string | string[]> {
  const query = new Query()
  const { url } = c.req
  const start = url.indexOf('?')
  if (start === -1) return query
  const text = url.slice(start + 1)
  if (forwards && !isClear(text))
    errors.push({
      in: 'query',
      path: '',
      message: 'Must be percent-encoded UTF-8, with %3B for a semicolon',
    })
  for (const [name, value] of queryParameters(text)) {
    if (repeatable.has(name)) {
      const values = query[name]
      if (Array.isArray(values)) values.push(value)
      else query[name] = [value]
      continue
    }
    if (name in query || name === UNCHECKED_NAME)
      errors.push({
        in: 'query',
        path: pointer([name]),
        message: name in query ? 'Must not be given twice' : 'Unknown keys are not allowed',
      })
    query[name] = value
  }
  return query
}

/**
 * Some servers separate parameters at semicolons too, and others drop such a parameter. Bytes that are not
 * UTF-8, and a `%` that encodes nothing, are replaced, kept or refused.
 */
function isClear(query: string): boolean {
  try {
    decodeURIComponent(query)
    return !query.includes(';')
  } catch {
    return false
  }
}

async function readJson(c: Context<Environment>, maxDepth: number): Promise<unknown> {
  const text = await readJsonText(c, true)
  // The stream is used up. Hono keeps promises here, whatever its types say.
  c.req.bodyCache.text = Promise.resolve(text) as unknown as string
  try {
    const value = parseStrictJson(text, { maxDepth, without: UNCHECKED_NAME })
    if (typeof value === 'number' && !isExact(text.trim())) throw new JsonRefused('number')
    findInexact(text, value)
    return value
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    throw new Denied({ code: 'malformed_request', check: `body_${error.check}` })
  }
}

export const isEncoded = (c: Context): boolean =>
  hasCoding(receivedHeaders(c).get('content-encoding'))

/** As {@link readBodyText}, for a body that is `application/json`, or with `suffixed` a `+json` too. */
export function readJsonText(c: Context<Environment>, suffixed = false): Promise<string> {
  const type = utf8MediaType(receivedHeaders(c).get('content-type'))
  const isJson = suffixed ? isJsonType(type) : type === JSON_TYPE
  if (!isJson || isEncoded(c))
    throw new Denied({ code: 'unsupported_media_type', expected: JSON_TYPE, encoded: isEncoded(c) })
  return readBodyText(c)
}

/** Returns the whole body, and keeps its bytes to forward. */
export async function readBodyBytes(c: Context<Environment>): Promise<Uint8Array> {
  const startMs = Date.now()
  const body = bodyOf(c, 'validate')
  const earlier = body instanceof ReadableStream && readEarlier(c, body, 'validate')
  const bytes = await (earlier || readWhole(body))
  if (isHeldUp(startMs))
    c.set('portcullis.heldUpSinceMs', c.get('portcullis.heldUpSinceMs') ?? startMs)
  c.set('portcullis.body', bytes)
  return bytes
}

/** Returns the whole body as text, and keeps its bytes to forward. Throws `Denied` if not UTF-8. */
export async function readBodyText(c: Context<Environment>): Promise<string> {
  const bytes = await readBodyBytes(c)
  try {
    // Keeps a byte order mark, which is then invalid JSON: some origins skip it, some fail.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Denied({ code: 'malformed_request', check: 'body_encoding' })
  }
}

/** Returns all bytes of a bounded body. Throws `Denied` if it breaks off, or after `timeoutMs`. */
export async function readWhole(
  body: BodyVariables['portcullis.body'],
  timeoutMs = READ_TIMEOUT_MS,
): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body
  try {
    // Not `bytes()`, which Node 20 and the `Response` of @hono/node-server do not have.
    return new Uint8Array(await withDeadline(new Response(body).arrayBuffer(), timeoutMs))
  } catch (error) {
    if (error instanceof Denied) throw error
    throw new Denied({ code: 'malformed_request', check: 'body_incomplete' })
  }
}
