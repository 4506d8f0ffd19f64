/** The part of a policy that says what is inspected in the requests of a route. */
import type * as z from 'zod'
import type { SignatureCategory } from '../errors.ts'
import { SIGNATURE_CATEGORIES } from '../validators/inspect.ts'
import type { Mode } from '../validators/mode.ts'

/** A method of JSON-RPC that may be called. */
export interface JsonRpcMethod {
  /** `<thing>:<verb>`, demanded of the caller besides the route's own. */
  readonly permission?: string
  /** Schema of `params`; without it they may be anything. */
  readonly params?: z.ZodType
}

/** A tool of MCP that may be called. */
export interface McpTool {
  /** `<thing>:<verb>`, demanded of the caller besides those of the route and of `tools/call`. */
  readonly permission?: string
  /** Schema of the tool's arguments; without it the tool takes none. */
  readonly arguments?: z.ZodType
}

/** What may be called over a route that speaks JSON-RPC 2.0. What is not named is refused. */
export interface JsonRpcDefinition {
  /** By their exact names; `true` for one without further conditions. */
  readonly methods: Readonly<Record<string, true | JsonRpcMethod>>
  /** The tools that `tools/call` may call (MCP), by their exact names; `true` as for methods. */
  readonly tools?: Readonly<Record<string, true | McpTool>>
  /** Most messages in one batch, 1 to 50. Default 1. */
  readonly maxBatch?: number
}

/** Signatures of attacks: a second line, whose rules score what the first has let through. */
export interface SignaturesDefinition {
  /** Sum of a category's scores from which on a request is an attack, 1 to 100. Default 5. */
  readonly threshold?: number
  /** Default `observe`: rules are watched before they are believed. */
  readonly mode?: Mode
  /** Which of them are looked for. Default all. */
  readonly categories?: readonly SignatureCategory[]
}

/** Inspection of a route's query and body. `{}` is all of it, with its defaults. */
export interface InspectDefinition {
  /** `observe` refuses nothing, and writes what it would have refused into the audit event. */
  readonly mode?: Mode
  /** Containers within each other in a JSON body, 1 to 100. Default 32. */
  readonly maxDepth?: number
  /** Names in a JSON body, and parameters of a query and a form together. Default 1,000. */
  readonly maxNames?: number
  /** Characters of one string in a JSON body, or of one parameter. Default 100,000. */
  readonly maxStringChars?: number
  /** Parameters that may stand in a query or form more than once. Default none. */
  readonly repeatable?: readonly string[]
  /** Signatures of attacks, in what the query, the path and the body say; false for none. */
  readonly signatures?: false | SignaturesDefinition
  /** The body must then be JSON-RPC 2.0. */
  readonly jsonRpc?: JsonRpcDefinition
}

/** What bounds one request, defaults filled in. */
export type InspectionLimits = Required<
  Pick<InspectDefinition, 'maxDepth' | 'maxNames' | 'maxStringChars' | 'repeatable'>
>

/** What holds where a policy says nothing. */
export const DEFAULT_INSPECTION: InspectionLimits = {
  maxDepth: 32,
  maxNames: 1_000,
  maxStringChars: 100_000,
  repeatable: [],
}

/** One rule that is sure of itself, or two that are not. */
export const DEFAULT_SIGNATURES: Required<SignaturesDefinition> = {
  threshold: 5,
  mode: 'observe',
  categories: SIGNATURE_CATEGORIES,
}

export const DEFAULT_MAX_BATCH = 1
