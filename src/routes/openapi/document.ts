/** Builds the OpenAPI document (version 3.1) from the schemas that check requests. */
import * as z from 'zod'
import type { Answer, Operation } from './operation.ts'
import { oauthErrorSchema, PROBLEM_STATUSES, problemSchema } from './problems.ts'

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: object }>>

export interface DocumentedAnswer {
  readonly description: string
  readonly headers?: Readonly<Record<string, { description: string; schema: JsonSchema }>>
  readonly content?: Content
}

export interface DocumentedOperation {
  readonly operationId: string
  readonly tags: readonly [string]
  readonly summary: string
  readonly description?: string
  readonly security: readonly Readonly<Record<string, readonly []>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, DocumentedAnswer | { readonly $ref: string }>>
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly responses: Readonly<Record<string, DocumentedAnswer>>
    readonly securitySchemes: Readonly<Record<string, object>>
  }
}

export interface DocumentOptions {
  /** The URL at which clients reach the gateway. */
  readonly publicUrl: string
  readonly version: string
}

const JSON_TYPE = 'application/json'
const operator = { type: 'http', scheme: 'bearer', description: "An operator's access token." }
const client = {
  ...{ type: 'http', scheme: 'basic' },
  description: 'An OAuth client (RFC 6749 section 2.3).',
}

/** Describes `operations`. Pure. It takes some milliseconds, so call it once. */
export function openApiDocument(
  operations: readonly Operation[],
  { publicUrl, version }: DocumentOptions,
): OpenApiDocument {
  const hasClients = operations.some(({ security }) => security === 'client')
  const paths: Record<string, Record<string, DocumentedOperation>> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][operation.method.toLowerCase()] = documented(operation)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portcullis',
      version,
      description: 'The calls of the gateway itself. Those of the API behind it are its own.',
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: {
        Problem: schemaOf(problemSchema(), 'output'),
        ...(hasClients && { OAuthError: schemaOf(oauthErrorSchema(), 'output') }),
      },
      responses: Object.fromEntries([
        ...problemAnswers('Problem', 'application/problem+json', operations),
        ...problemAnswers('OAuthError', JSON_TYPE, operations),
      ]),
      securitySchemes: { operator, ...(hasClients && { client }) },
    },
  }
}

function documented(operation: Operation): DocumentedOperation {
  const { params, query, body, security } = operation
  const parameters = [...parametersOf(params, 'path'), ...parametersOf(query, 'query')]
  const kind = problemKindOf(operation)
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description && { description: operation.description }),
    security: security === undefined ? [] : [{ [security]: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: body.optional !== true,
        content: {
          [body.mediaType ?? JSON_TYPE]: {
            schema: schemaOf(body.schema, 'input'),
            example: body.example,
          },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.answers).map(([status, answer]) => [status, answerOf(answer)]),
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

function answerOf({ description, schema, mediaType = JSON_TYPE }: Answer): DocumentedAnswer {
  if (schema === undefined) return { description }
  return { description, content: { [mediaType]: { schema: schemaOf(schema(), 'output') } } }
}

/** The component that describes the body of an operation's refusals. */
const problemKindOf = ({ security }: Operation) =>
  security === 'client' ? 'OAuthError' : 'Problem'

/** Describes refusals of one kind: those with a status that one of the operations answers with. */
function* problemAnswers(
  schema: 'Problem' | 'OAuthError',
  mediaType: string,
  operations: readonly Operation[],
): Generator<readonly [string, DocumentedAnswer]> {
  const used = new Set(
    operations.flatMap((one) => (problemKindOf(one) === schema ? one.problems : [])),
  )
  for (const [status, { description, headers = {} }] of Object.entries(PROBLEM_STATUSES)) {
    if (!used.has(Number(status))) continue
    const told = Object.entries(headers).map(([name, about]) => [
      name,
      { description: about, schema: { type: 'string' } },
    ])
    yield [
      schema + status,
      {
        description,
        ...(told.length > 0 && { headers: Object.fromEntries(told) }),
        content: { [mediaType]: { schema: { $ref: `#/components/schemas/${schema}` } } },
      },
    ]
  }
}

function* parametersOf(
  schema: z.ZodObject | undefined,
  where: Parameter['in'],
): Generator<Parameter> {
  if (schema === undefined) return
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
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

/** Returns the JSON Schema of the input (before defaults and transformations) or of the output. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
