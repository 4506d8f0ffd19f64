/** What callers may use of an MCP server, as a policy writes it. */
import type { $ZodType } from 'zod/v4/core'
import type { RelationDemand } from '../../access/relations/definition.ts'
import type { JsonRpcMethod } from '../../inspection/definition.ts'
import type { McpFeature } from '../../policy/mcp.ts'
import type { Mode } from '../../validators/mode.ts'

export interface McpAccess {
  /** The caller needs it in addition to the route's permission. */
  readonly permission?: string
}

export interface McpToolAccess {
  /** The caller needs it in addition to the route's permission. */
  readonly permission?: string
  /** Schema of the arguments; `'any'` does not check them. Default: the tool has no arguments. */
  readonly arguments?: $ZodType | 'any'
  /**
   * Relation to an object that a call must have. Its templates may name arguments:
   * `document:{arguments.id}`.
   */
  readonly relation?: RelationDemand
  /** Names of limits that a call counts in addition to those of the route. Default none. */
  readonly limits?: readonly string[]
  /**
   * Hash of the approved definition of the tool: `sha256-` and 43 characters, as audit events report
   * it. Default: any definition.
   */
  readonly definition?: string
}

export interface McpPromptAccess extends McpAccess {
  /** Schema of the arguments. Default: they are not checked. */
  readonly arguments?: $ZodType
}

type Names<Access> = Readonly<Record<string, true | Access>>

/** The parts of an MCP server that callers may use. Everything else is hidden, and refused. */
export interface McpDefinition {
  /** By exact name; `'*'` for all others. Default none. */
  readonly tools?: Names<McpToolAccess>
  /** By URI, or by the beginning of URIs before `*`: `file:///docs/*`. Default none. */
  readonly resources?: Names<McpAccess>
  /** By exact name; `'*'` for all others. Default none. */
  readonly prompts?: Names<McpPromptAccess>
  /** Methods beyond those of the protocol, or with other conditions. */
  readonly methods?: Readonly<Record<string, true | JsonRpcMethod>>
  /**
   * Scopes that a client needs at the issuer to use the server. Default: the permission of the
   * route. `[]`: scopes do nothing at the issuer, so no response names one.
   */
  readonly scopes?: readonly string[]
  /**
   * Accepted values of `MCP-Protocol-Version`. The answer of a server that negotiates another version is
   * refused. Default: the revisions since 2024-11-05.
   */
  readonly versions?: readonly string[]
  /** `observe` audits changed definitions of tools, and lets them pass. Default `enforce`. */
  readonly definitions?: Mode
  /** Maximum size of one message of the server in a list or a stream. Default 1 MiB. */
  readonly maxMessageBytes?: number
}

export const DEFAULT_VERSIONS = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
] as const
export const DEFAULT_MAX_MESSAGE_BYTES = 1_048_576

const isServer = (
  feature: McpFeature,
): feature is McpFeature & { readonly definition: McpDefinition } => 'definition' in feature

/** Returns what callers may use of the server behind a route. */
export const accessOf = (feature: McpFeature): McpDefinition | undefined =>
  isServer(feature) ? feature.definition : undefined
