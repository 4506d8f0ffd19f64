/** The one table of the pages of the console, in the order of the navigation. */
import { ACT } from './actions.ts'
import { API_KEYS } from './api-keys.ts'
import { AUDIT_CHAIN } from './audit-chain.ts'
import { CALLERS } from './callers.ts'
import { DECISIONS } from './decisions.ts'
import { EXPLAIN } from './explain.ts'
import { KEYS } from './keys.ts'
import { LIMITS } from './limits.ts'
import { LIVE } from './live.ts'
import { MCP } from './mcp.ts'
import { OVERVIEW } from './overview.ts'
import { OVERVIEW_STREAM } from './overview-stream.ts'
import type { PageDefinition } from './page.ts'
import { POLICY } from './policy.ts'
import { RELATIONS } from './relations.ts'

export const PAGES: readonly PageDefinition[] = [
  OVERVIEW,
  OVERVIEW_STREAM,
  ...LIVE,
  ...DECISIONS,
  CALLERS,
  ...API_KEYS,
  LIMITS,
  POLICY,
  ...RELATIONS,
  MCP,
  KEYS,
  ...AUDIT_CHAIN,
  EXPLAIN,
  ACT,
]
