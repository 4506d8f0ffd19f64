/** The MCP server behind a route of a policy. `portcullis/mcp` contains the code behind it. */
import type { Mistake } from '../problems/mistake.ts'
import type { Feature, ListedFeature } from '../validators/feature.ts'
import type { PolicyRelations } from './relations.ts'

export interface McpReferences {
  /** Names of all limits of the policy. */
  readonly names: readonly string[]
  /** Null if they have mistakes. */
  readonly relations: PolicyRelations | null | undefined
}

/** Only `mcp()` creates it, for the routes that it returns. */
export interface McpFeature extends Feature<'mcp'> {
  readonly by: ListedFeature
  /** Names of the limits of its tools. */
  readonly limits: readonly string[]
  /** Permissions that parts of the server require. */
  readonly permissions: readonly string[]
  /** Yields the mistakes in the limits and relations of tools. */
  mistakesIn(route: { readonly anonymous?: true }, references: McpReferences): Iterable<Mistake>
}
