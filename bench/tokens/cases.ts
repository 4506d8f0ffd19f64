/** Token cases over HTTP: issuing, validating, and the whole pipeline. */
import type { TokenFormat } from '../../src/access/tokens/access-grant.ts'
import { membersOf } from '../load/client.ts'
import { bearing, COMMON_HEADERS, expectAnswer, type Question, read } from '../load/questions.ts'
import type { Contestant } from '../measure/rounds.ts'
import type { PublishedId } from '../published.ts'
import { clientEntry, type Holder, newClient, type TokenClient } from '../stack/credentials.ts'
import type { Ground, RunningGateway } from '../stack/gateway.ts'
import {
  COLD_VALIDATION_PATH,
  type OperationId,
  VALIDATION_PATH,
  validationAnswer,
} from './operations.ts'

/** Requests per second that the product must reach. */
const REQUIRED_ISSUED = 1_000
const REQUIRED_VALIDATED = 5_000

/** Callers of the pipeline, each with its own window in Redis. */
const SUBJECTS = 50
const FEW_TOKENS = 100
/** The capacity of a token cache. */
export const MANY_TOKENS = 10_000

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

/** Comparable published figures, by operation or case. */
export const TOKENS_BESIDE: { readonly [Id in OperationId | CaseId]?: PublishedId } = {
  uuid: 'identity-opaque',
  'issue-RS256': 'identity-sign',
  'verify-RS256': 'identity-verify',
  'issue-jwt': 'identity-issue-rate',
  'validate-cached': 'identity-validate-rate',
}

export interface Case extends Omit<Contestant, 'pid' | 'url'> {
  readonly id: CaseId
  readonly requiredPerSecond: number | undefined
  /** Whether the isolate must have cached each token beforehand. */
  readonly cached: boolean
  /** The issued tokens; only of issuing cases. */
  readonly issued?: IssuedTokens
}

export type TokenCallers = Awaited<ReturnType<typeof prepareCallers>>

export async function prepareCallers({ mint, mintApiKeys }: Ground) {
  const client = { jwt: newClient(), opaque: newClient() }
  const entry = (tokenFormat: TokenFormat) =>
    clientEntry(client[tokenFormat], {
      grants: ['client_credentials'],
      roles: ['writer'],
      tokenFormat,
    })
  return {
    /** The gateway's variable `CLIENTS`. */
    clients: JSON.stringify([await entry('jwt'), await entry('opaque')]),
    client,
    few: await mint(FEW_TOKENS),
    many: await mint(MANY_TOKENS),
    fewRsa: await mint(FEW_TOKENS, { algorithm: 'RS256' }),
    jwts: await mint(SUBJECTS),
    opaques: await mint(SUBJECTS, { format: 'opaque' }),
    apiKeys: await mintApiKeys(SUBJECTS),
  }
}

/** Returns all cases, in the order of {@link CASE_IDS}. */
export function casesOf({ client, few, many, fewRsa, ...callers }: TokenCallers): readonly Case[] {
  return [
    issuing('issue-jwt', 'issue ES256', client.jwt, 'jwt'),
    issuing('issue-opaque', 'issue opaque', client.opaque, 'opaque'),
    validating('validate-cached', 'ES256 tokens, cached', few, true),
    validating('validate-many-cached', 'ES256 tokens, cached', many, true),
    validating('validate-cold', 'ES256 tokens, cold', few, false),
    validating('validate-cold-rsa', 'RS256 tokens, cold', fewRsa, false),
    pipeline('pipeline-jwt', 'whole pipeline, ES256', callers.jwts),
    pipeline('pipeline-opaque', 'whole pipeline, opaque', callers.opaques),
    pipeline('pipeline-api-key', 'whole pipeline, API key', callers.apiKeys),
  ]
}

/** Returns a case as a contestant. Some of the issued tokens must open the gateway. */
export function caseContestant(each: Case, { pid, originOf }: RunningGateway): Contestant {
  const { id, title, issued, questions, expected } = each
  return {
    id,
    title,
    pid,
    questions,
    expected,
    url: originOf(id.startsWith('validate') ? 'validation' : 'gateway'),
    async check() {
      for (const token of issued?.samples() ?? [])
        await expectAnswer(originOf('gateway'), read(token), `${title}: its own token`)
      issued?.clear()
    },
  }
}

/** Returns a client's request for its own token (RFC 6749 section 4.4). */
export function tokenRequest(
  { id, secret }: TokenClient,
  answer: Question['answer'],
  status = 200,
): Question {
  return {
    method: 'POST',
    path: '/oauth/token',
    headers: {
      ...COMMON_HEADERS,
      authorization: `Basic ${btoa(`${id}:${secret}`)}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
    status,
    answer,
  }
}

function issuing(id: CaseId, title: string, client: TokenClient, format: TokenFormat): Case {
  const issued = createIssuedTokens(format)
  return {
    id,
    title,
    issued,
    cached: false,
    requiredPerSecond: REQUIRED_ISSUED,
    questions: [tokenRequest(client, issued.take)],
    expected: { origin: 0, redis: format === 'jwt' ? 1 : 2 },
  }
}

function validating(id: CaseId, kind: string, holders: readonly Holder[], cached: boolean): Case {
  return {
    id,
    cached,
    requiredPerSecond: REQUIRED_VALIDATED,
    title: `validate, ${holders.length.toLocaleString('en')} ${kind}`,
    questions: holders.map(({ credential, subject }) => ({
      method: 'GET',
      path: cached ? VALIDATION_PATH : COLD_VALIDATION_PATH,
      headers: bearing(credential),
      status: 200,
      answer: validationAnswer(subject, cached),
    })),
    expected: { origin: 0, redis: 0 },
  }
}

function pipeline(id: CaseId, title: string, holders: readonly Holder[]): Case {
  return {
    id,
    title,
    cached: false,
    requiredPerSecond: undefined,
    questions: holders.map(({ credential }) => read(credential)),
    expected: { origin: 1, redis: 1 },
  }
}

const FORMS: Readonly<Record<TokenFormat, RegExp>> = {
  jwt: /^[\w-]{20,}\.[\w-]{100,}\.[\w-]{86}$/,
  opaque: /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
}
const SAMPLES = 5

export interface IssuedTokens {
  /** Reports whether a body is a token response (RFC 6749 section 5.1) with a new token. */
  readonly take: (body: string) => boolean
  /** Returns some of the tokens, with the first and the last. Throws an `Error` if there are none. */
  samples(): readonly string[]
  clear(): void
}

export function createIssuedTokens(format: TokenFormat): IssuedTokens {
  const tokens = new Set<string>()
  return {
    take(body) {
      const { access_token: token, token_type: type, expires_in: life } = membersOf(body)
      const isNew = typeof token === 'string' && FORMS[format].test(token) && !tokens.has(token)
      if (isNew) tokens.add(token)
      return isNew && type === 'Bearer' && typeof life === 'number' && life > 0
    },
    samples() {
      const all = [...tokens]
      if (all.length === 0) throw new Error('no token was issued')
      const last = all.length - 1
      return Array.from(
        { length: SAMPLES },
        (_, i) => all[Math.round((i * last) / (SAMPLES - 1))] as string,
      )
    },
    clear: () => tokens.clear(),
  }
}
