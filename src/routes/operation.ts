/** What one of the gateway's own calls is, to whoever asks for the OpenAPI document. */
import type * as z from 'zod'
import type { Method } from '../policy.ts'

/** An answer that is no problem. */
export interface Answer {
  readonly description: string
  /** Of its body, made when somebody asks for the description; absent: no body. */
  readonly schema?: () => z.ZodType
  /** Default `application/json`. */
  readonly mediaType?: string
}

export interface Operation {
  readonly method: Method
  /** Hono pattern, from the root. */
  readonly path: string
  /** Camel case, unique. */
  readonly id: string
  /** Heading of a group. */
  readonly tag: string
  /** A line. */
  readonly summary: string
  /** Paragraphs. */
  readonly description?: string
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: {
    readonly schema: z.ZodType
    /** Default `application/json`. */
    readonly mediaType?: string
    readonly optional?: boolean
    readonly example: object
  }
  /** By status. */
  readonly answers: Readonly<Record<number, Answer>>
  /** Statuses of the problems that it can answer with. */
  readonly problems: readonly number[]
  /** What it asks of its caller; absent: nothing. */
  readonly security?: 'operator' | 'client'
}
