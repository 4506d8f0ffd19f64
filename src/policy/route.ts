/** A checked row of the route table. */
import type { LimitRule } from '../admission/limit.ts'
import type { OriginSpelling } from '../http/path-reading.ts'
import type { InspectDefinition } from '../inspection/definition.ts'
import type { RelationRule } from '../relations/rule.ts'
import type { Mode } from '../validators/mode.ts'
import type { Method } from '../validators/policy.ts'
import type { InputSchemas, LimitBy } from './definition.ts'

/** A limit with its name, as `admit` uses it. */
export interface PolicyLimit extends LimitRule {
  readonly by: LimitBy
}

/** A limit of this name counts the calls of operators. */
export const OPERATORS_LIMIT = 'operators'

/** A checked row of the route table with its defaults. */
export interface PolicyRoute {
  readonly method: Method
  readonly path: string
  /** Undefined: `loose`. */
  readonly originSpelling?: OriginSpelling | undefined
  readonly permission: string | undefined
  /** Whether the permission is enforced or only observed. Undefined: enforced. */
  readonly permissionMode?: Mode | undefined
  /** The relation that is required in addition to the permission. */
  readonly relation?: RelationRule | undefined
  readonly limits: readonly PolicyLimit[]
  readonly input: InputSchemas
  readonly maxBodyBytes: number
  readonly originTimeoutMs: number
  readonly forwardAuthorization: boolean
  readonly forwardCookies: boolean
  readonly webSocketOrigins: readonly string[]
  readonly dpop: boolean
  readonly coalesce: boolean
  /** Undefined: no inspection. */
  readonly inspect?: InspectDefinition | undefined
}
