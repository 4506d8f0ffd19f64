/** The description of one of the gateway's own calls, for the OpenAPI document. */
import type { $ZodObject, $ZodType } from 'zod/v4/core'
import type { Method } from '../policy/policy.ts'

/** A security scheme (OpenAPI 3.1 section 4.8.27). */
export type SecurityScheme = { readonly description: string } & (
  | { readonly type: 'http'; readonly scheme: 'bearer' | 'basic' }
  | { readonly type: 'apiKey'; readonly in: 'header' | 'cookie'; readonly name: string }
)

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Describes the input of a schema, before defaults and transformations, or its output. */
export type ToJsonSchema = (schema: $ZodType, use: 'input' | 'output') => JsonSchema

/** A response that is not a problem. */
export interface OperationResponse {
  readonly description: string
  /** Schema of its body, created on demand; absent: no body. */
  readonly schema?: () => $ZodType
  /** Default `application/json`. */
  readonly mediaType?: string
}

export interface Operation {
  readonly method: Method
  /** Hono pattern, from the root. */
  readonly path: string
  /** Camel case, unique. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  /** One or more paragraphs. */
  readonly description?: string
  readonly params?: $ZodObject
  readonly query?: $ZodObject
  readonly body?: {
    readonly schema: $ZodType
    /** Default `application/json`. */
    readonly mediaType?: string
    readonly optional?: boolean
    readonly example: object
  }
  readonly responses: Readonly<Record<number, OperationResponse>>
  /** Statuses of the problems that the call can return. */
  readonly problems: readonly number[]
  /** The credentials that the call needs; absent: none. */
  readonly security?: 'operator' | 'client' | 'session' | 'caller'
  /** Whether its problems have the form of RFC 6749. Default: true if the call needs the credentials of a client. */
  readonly hasOAuthErrors?: boolean
  /** Describes its schemas. Default: only the kinds of schemas that the gateway's own calls have. */
  readonly toJsonSchema?: ToJsonSchema | undefined
  /** Describes the credentials, if they are those of a feature: the scheme by its name. */
  readonly scheme?: Readonly<Record<string, SecurityScheme>>
}
