/** Approvals of changed definitions of tools, which another feature may offer. */
import { createExchange } from '../../isolate/exchange.ts'

/** A definition of a tool that is not the one of the policy. */
export interface ChangedTool {
  /** The path of the server. */
  readonly server: string
  readonly name: string
  /** From `definitionHash`. */
  readonly hash: string
  readonly definition: object
}

export interface ToolApprovals {
  /** Records the definition, and reports whether an operator has approved it. False if the store fails. */
  isApproved(tool: ChangedTool): Promise<boolean>
}

/** By the authorizer of the gateway. Default: only the definitions of the policy are approved. */
export const TOOL_APPROVALS = createExchange<ToolApprovals>()
