import type { $ZodType } from 'zod/v4/core'
import type { Mode } from '../validators/mode.ts'
import type { SignatureJudge } from './judge.ts'
import type { InspectionLimits } from './limits.ts'

export interface JsonRpcMethod {
  /** The caller needs it in addition to the route's permission. */
  readonly permission?: string
  /** Schema of `params`. Without it, any `params` are allowed. */
  readonly params?: $ZodType
}

export interface McpTool {
  /** The caller needs it in addition to the permissions of the route and of `tools/call`. */
  readonly permission?: string
  /** Schema of the tool's arguments. Without it, the tool accepts no arguments. */
  readonly arguments?: $ZodType
}

/** The allowed calls of a route with JSON-RPC 2.0. All other calls are refused. */
export interface JsonRpcDefinition {
  /** By exact name; `true` for a method without further conditions. */
  readonly methods: Readonly<Record<string, true | JsonRpcMethod>>
  /** The tools that `tools/call` may call (MCP), by exact name; `true` as for methods. */
  readonly tools?: Readonly<Record<string, true | McpTool>>
  /** Maximum number of messages in one batch, 1 to 50. Default 1. */
  readonly maxBatch?: number
}

/** Inspection of a route's query and body. `{}` enables the bounds with their defaults. */
export interface InspectDefinition {
  /** `observe` audits what `enforce` refuses; `inspect` lists the exceptions. Default `enforce`. */
  readonly mode?: Mode
  /** Nested containers in a JSON body, 1 to 100. Default 32. */
  readonly maxDepth?: number
  /** Names in a JSON body, and parameters of a query and a form together. Default 1,000. */
  readonly maxNames?: number
  /** Characters of one string in a JSON body, or of one parameter. Default 100,000. */
  readonly maxStringChars?: number
  /** Parameters that may be repeated in a query or form. Default none. */
  readonly repeatable?: readonly string[]
  /**
   * Attack signatures in the path, the query and the body: `signatures()` from
   * `portcullis/signatures`. Default, and with `false`: none.
   */
  readonly signatures?: false | SignatureJudge
  /** If present, the body must be JSON-RPC 2.0. */
  readonly jsonRpc?: JsonRpcDefinition
}

export const DEFAULT_INSPECTION: InspectionLimits = {
  maxDepth: 32,
  maxNames: 1_000,
  maxStringChars: 100_000,
  repeatable: [],
}

export const DEFAULT_MAX_BATCH = 1
