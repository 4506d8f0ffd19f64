/** What is measured of tokens over HTTP. */
import { ORIGIN_BODY } from '../backends.ts'
import type { Load, LoadRequest } from '../load.ts'
import { COMMON_HEADERS } from '../order-requests.ts'
import type { Workerd } from '../workerd.ts'
import type { Holder, TokenCallers, TokenClient } from './callers.ts'
import { createIssuedTokens, type IssuedTokens } from './issued-tokens.ts'
import { COLD_VALIDATION_PATH, VALIDATION_PATH, validationAnswer } from './validation-answer.ts'

/** What the product has to reach, requests a second. */
export const REQUIRED_ISSUED = 1_000
export const REQUIRED_VALIDATED = 5_000

export const CASE_IDS = [
  'issue-jwt',
  'issue-opaque',
  'validate-cached',
  'validate-many-cached',
  'validate-cold',
  'validate-cold-rsa',
  'pipeline-jwt',
  'pipeline-opaque',
  'pipeline-api-key',
] as const
export type CaseId = (typeof CASE_IDS)[number]

/** How the same request is made, over and over. */
export interface Case {
  readonly id: CaseId
  /** In tables. */
  readonly title: string
  readonly service: 'gateway' | 'validation'
  readonly path: string
  readonly method: Load['method']
  readonly requests: readonly LoadRequest[]
  readonly expectBody?: string
  /** HTTP calls to Redis for each request. */
  readonly redisCalls: number
  /** Requests that the origin must have got for each answer. */
  readonly originRequests: 0 | 1
  readonly requiredPerSecond: number | undefined
  /** Where tokens are validated: whether each must be one that the isolate knows, or none. */
  readonly remembered?: boolean
  /** Where tokens are issued: all of them. */
  readonly issued?: IssuedTokens
}

const PIPELINE = {
  service: 'gateway',
  path: '/orders?limit=20',
  method: 'GET',
  expectBody: ORIGIN_BODY,
  redisCalls: 1,
  originRequests: 1,
  requiredPerSecond: undefined,
} as const
const VALIDATION = {
  service: 'validation',
  method: 'GET',
  redisCalls: 0,
  originRequests: 0,
  requiredPerSecond: REQUIRED_VALIDATED,
} as const
const ISSUING = {
  service: 'gateway',
  path: '/oauth/token',
  method: 'POST',
  originRequests: 0,
  requiredPerSecond: REQUIRED_ISSUED,
} as const

/** All cases, in the order of {@link CASE_IDS}. */
export function casesOf({ client, few, many, fewRsa, ...callers }: TokenCallers): readonly Case[] {
  const issuing = { jwt: createIssuedTokens('jwt'), opaque: createIssuedTokens('opaque') }
  return [
    issuingCase('issue-jwt', 'issue ES256', client.jwt, issuing.jwt, 1),
    issuingCase('issue-opaque', 'issue opaque', client.opaque, issuing.opaque, 2),
    validatingCase('validate-cached', 'ES256 tokens, cached', few, true),
    validatingCase('validate-many-cached', 'ES256 tokens, cached', many, true),
    validatingCase('validate-cold', 'ES256 tokens, cold', few, false),
    validatingCase('validate-cold-rsa', 'RS256 tokens, cold', fewRsa, false),
    pipelineCase('pipeline-jwt', 'whole pipeline, ES256', callers.jwts),
    pipelineCase('pipeline-opaque', 'whole pipeline, opaque', callers.opaques),
    pipelineCase('pipeline-api-key', 'whole pipeline, API key', callers.apiKeys),
  ]
}

/** The load of a case, without its length. */
export function loadOf(
  { service, path, method, requests, expectBody }: Case,
  { originOf }: Pick<Workerd, 'originOf'>,
): Omit<Load, 'connections' | 'seconds'> {
  const url = originOf(service) + path
  return { url, method, requests, ...(expectBody !== undefined && { expectBody }) }
}

/** What a client sends for a token of its own (RFC 6749 section 4.4). */
export function tokenRequest({ id, secret }: TokenClient): LoadRequest & { readonly body: string } {
  return {
    headers: {
      ...COMMON_HEADERS,
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  }
}

/** What a caller sends that shows a credential. */
export function bearing(credential: string): Record<string, string> {
  return { authorization: `Bearer ${credential}`, ...COMMON_HEADERS }
}

function issuingCase(
  id: CaseId,
  title: string,
  client: TokenClient,
  issued: IssuedTokens,
  redisCalls: number,
): Case {
  const requests = [{ ...tokenRequest(client), isRight: issued.take }]
  return { ...ISSUING, id, title, requests, issued, redisCalls }
}

function validatingCase(
  id: CaseId,
  kind: string,
  holders: readonly Holder[],
  remembered: boolean,
): Case {
  const requests = holders.map(({ credential, subject }) => ({
    headers: bearing(credential),
    isRight: (body: string) => body === validationAnswer(subject, remembered),
  }))
  return {
    ...VALIDATION,
    id,
    path: remembered ? VALIDATION_PATH : COLD_VALIDATION_PATH,
    remembered,
    title: `validate, ${holders.length.toLocaleString('en')} ${kind}`,
    requests,
  }
}

function pipelineCase(id: CaseId, title: string, holders: readonly Holder[]): Case {
  const requests = holders.map(({ credential }) => ({ headers: bearing(credential) }))
  return { ...PIPELINE, id, title, requests }
}
