/** What the checks of a token compare. */
import type { KeyRing } from '../../src/access/tokens/key-ring.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import type { Fields } from './check.ts'
import type { Presented } from './rules.ts'

/** A token and the entry that it is compared with. */
export interface Comparison {
  readonly presented: Presented
  readonly fields: Fields
  /** The entry with its preset and all defaults. */
  readonly config: IssuerConfig
  /** Names the entry: `ISSUERS[0]`. */
  readonly of: string
  /** The keys of the issuer, for all algorithms. Undefined if they were not fetched. */
  readonly ring: KeyRing | undefined
  readonly nowMs: number
}
