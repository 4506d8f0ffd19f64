/** Builds the OpenAPI document (version 3.1) from the schemas that check requests. */
import * as z from 'zod/mini'
import type {
  JsonSchema,
  Operation,
  OperationResponse,
  SecurityScheme,
  ToJsonSchema,
} from '../../routes/operation.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'
import {
  DEFAULT_TOKEN_SOURCES,
  isAuthorization,
  type TokenSource,
} from '../../validators/token-source.ts'
import { toJsonSchema } from './json-schema.ts'

export interface DocumentedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, { description: string; schema: JsonSchema }>>
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>
}

export type DocumentedOperation = ReturnType<typeof documented>
export type OpenApiDocument = ReturnType<typeof openApiDocument>

const JSON_TYPE = 'application/json'
const OPERATOR = "An operator's access token."
const client: SecurityScheme = {
  type: 'http',
  scheme: 'basic',
  description: 'An OAuth client (RFC 6749 section 2.3).',
}

/** RFC 9457, as `problem.ts` writes it. */
const problemSchema = () =>
  z.strictObject({
    type: z.string().check(describe('urn:portcullis:problem: followed by the code')),
    title: z.string(),
    status: integer(),
    detail: z.string(),
    code: z.string(),
    requestId: z.optional(z.string()),
    limit: z.optional(z.string()).check(describe('with status 429: the exhausted limit')),
    plan: z.optional(z.string()).check(describe('the plan whose units are exhausted')),
    renewsAt: z.optional(z.iso.datetime()).check(describe('when the quota renews')),
    errors: z
      .optional(
        z.array(
          z.strictObject({
            in: z.enum(['params', 'query', 'headers', 'body']),
            path: z.string().check(describe('a JSON Pointer')),
            message: z.string(),
            rule: z
              .optional(z.looseObject({ code: z.string() }))
              .check(describe("the broken rule of the schema, in operators' calls")),
          }),
        ),
      )
      .check(describe('with status 422: the invalid values and the reasons')),
  })

/** RFC 6749 section 5.2, as `oauth/error.ts` writes it. */
const oauthErrorSchema = () =>
  z.strictObject({
    error: z.string(),
    error_description: z.string(),
  })

const RETRY_AFTER = { 'Retry-After': 'seconds to wait before a retry' }

/** The meaning of statuses at the gateway, and their headers with details. */
const PROBLEM_STATUSES: Readonly<
  Record<number, { description: string; headers?: Readonly<Record<string, string>> }>
> = {
  400: { description: 'The request is malformed or ambiguous.' },
  401: {
    description: 'Credentials are missing or invalid.',
    headers: { 'WWW-Authenticate': 'a challenge (RFC 6750, RFC 7617, RFC 9449)' },
  },
  403: { description: 'The caller does not have the permission, or is banned.' },
  404: { description: 'The resource does not exist.' },
  405: {
    description: 'The path does not support the method.',
    headers: { Allow: 'supported methods' },
  },
  409: { description: 'Other requests changed the resource.' },
  413: { description: 'The body is too large, or the call accepts no body.' },
  415: { description: 'The media type of the body is not supported.' },
  422: {
    description: 'The input does not match the schema, or names something that does not exist.',
  },
  429: { description: 'A limit is exhausted.', headers: RETRY_AFTER },
  500: { description: 'The gateway has a defect.' },
  503: { description: 'A dependency is unavailable.', headers: RETRY_AFTER },
}

/** A problem that a feature declares. */
interface DeclaredProblem {
  readonly code: string
  readonly status: number
  readonly title: string
}

export interface DocumentOptions {
  /** The problems of features. Default: none. */
  readonly problems?: readonly DeclaredProblem[] | undefined
  readonly publicUrl: string
  readonly version: string
  /** Where operators' tokens are read from. Default `Authorization`. */
  readonly sources?: readonly TokenSource[] | undefined
}

/** Returns a scheme for each source: `operator`, `operator2`, `operator3`. */
function operatorSchemes(sources: readonly TokenSource[]): Record<string, SecurityScheme> {
  const schemes = sources.map((source, at) => [
    at === 0 ? 'operator' : `operator${at + 1}`,
    describeScheme(source),
  ])
  return Object.fromEntries(schemes)
}

function describeScheme(source: TokenSource): SecurityScheme {
  if ('cookie' in source)
    return { type: 'apiKey', in: 'cookie', name: source.cookie, description: OPERATOR }
  if (isAuthorization(source)) return { type: 'http', scheme: 'bearer', description: OPERATOR }
  return { type: 'apiKey', in: 'header', name: source.header, description: OPERATOR }
}

/** Describes `operations`. Pure. It runs for some milliseconds, so call it once. */
export function openApiDocument(
  operations: readonly Operation[],
  { publicUrl, version, sources = DEFAULT_TOKEN_SOURCES, problems = [] }: DocumentOptions,
) {
  const operators = operatorSchemes(sources)
  const hasClients = operations.some(({ security }) => security === 'client')
  const securitySchemes: Record<string, SecurityScheme> = {
    ...operators,
    ...(hasClients && { client }),
    ...Object.assign({}, ...operations.map(({ scheme }) => scheme)),
  }
  const paths: Record<string, Record<string, DocumentedOperation>> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][operation.method.toLowerCase()] = documented(operation, Object.keys(operators))
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version,
      description: 'The calls of the gateway itself. The API behind it has its own description.',
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: {
        Problem: toJsonSchema(problemSchema(), 'output'),
        ...(hasClients && { OAuthError: toJsonSchema(oauthErrorSchema(), 'output') }),
      },
      responses: Object.fromEntries([
        ...problemResponses('Problem', 'application/problem+json', operations, problems),
        ...problemResponses('OAuthError', JSON_TYPE, operations, []),
      ]),
      securitySchemes,
    },
  }
}

function documented(operation: Operation, operators: readonly string[]) {
  const { params, query, body, security } = operation
  const toSchema = operation.toJsonSchema ?? toJsonSchema
  const parameters = [
    ...describeParameters(params && toSchema(params, 'input'), 'path'),
    ...describeParameters(query && toSchema(query, 'input'), 'query'),
  ]
  const kind = problemKindOf(operation)
  // One of them suffices. Without any, the call needs no credentials.
  const schemes = security === 'operator' ? operators : security === undefined ? [] : [security]
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description && { description: operation.description }),
    security: schemes.map((name) => ({ [name]: [] })),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: body.optional !== true,
        content: {
          [body.mediaType ?? JSON_TYPE]: {
            schema: toSchema(body.schema, 'input'),
            example: body.example,
          },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.responses).map(([status, response]) => [
          status,
          describeResponse(response, toSchema),
        ]),
      ),
      ...Object.fromEntries(
        operation.problems.map((status) => [
          status,
          { $ref: `#/components/responses/${kind}${status}` },
        ]),
      ),
    },
  }
}

function describeResponse(
  { description, schema, mediaType = JSON_TYPE }: OperationResponse,
  toSchema: ToJsonSchema,
): DocumentedResponse {
  if (schema === undefined) return { description }
  return { description, content: { [mediaType]: { schema: toSchema(schema(), 'output') } } }
}

/** The component that describes the body of an operation's refusals. */
const problemKindOf = ({ security, hasOAuthErrors = security === 'client' }: Operation) =>
  hasOAuthErrors ? 'OAuthError' : 'Problem'

/** Describes refusals of one kind: those with a status that one of the operations returns. */
function* problemResponses(
  schema: 'Problem' | 'OAuthError',
  mediaType: string,
  operations: readonly Operation[],
  declared: readonly DeclaredProblem[],
): Generator<readonly [string, DocumentedResponse]> {
  const used = new Set(
    operations.flatMap((one) => (problemKindOf(one) === schema ? one.problems : [])),
  )
  const statuses = [
    ...Object.keys(PROBLEM_STATUSES).map(Number),
    ...declared.map((one) => one.status),
  ]
  for (const status of new Set(statuses)) {
    if (!used.has(status)) continue
    const { description: ofGateway, headers = {} } = PROBLEM_STATUSES[status] ?? {}
    const ofFeatures = declared
      .filter((one) => one.status === status)
      .map(({ code, title }) => `\`${code}\`: ${title}.`)
    const description = [...(ofGateway === undefined ? [] : [ofGateway]), ...ofFeatures].join(' ')
    const described = Object.entries(headers).map(([name, about]) => [
      name,
      { description: about, schema: { type: 'string' } },
    ])
    yield [
      schema + status,
      {
        description,
        ...(described.length > 0 && { headers: Object.fromEntries(described) }),
        content: { [mediaType]: { schema: { $ref: `#/components/schemas/${schema}` } } },
      },
    ]
  }
}

function* describeParameters(schema: JsonSchema = {}, where: 'path' | 'query') {
  const { properties = {}, required = [] } = schema as {
    properties?: Record<string, JsonSchema>
    required?: readonly string[]
  }
  for (const [name, { description, ...rest }] of Object.entries(properties)) {
    yield {
      name,
      in: where,
      required: where === 'path' || required.includes(name),
      ...(typeof description === 'string' && { description }),
      schema: rest,
    }
  }
}
