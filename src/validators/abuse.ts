/** Schema of a policy's `abuse`. */
import * as z from 'zod/mini'
import { parseRange } from '../http/ip-address.ts'
import { modeSchema as mode } from './mode.ts'
import { partial, wholeNumber, withShorthand } from './schema-parts.ts'

const windowSeconds = wholeNumber(1, 86_400)
/** At most one year, as for bans by operators. */
const banSeconds = wholeNumber(1, 31_536_000)

const addresses = z
  .string()
  .check(z.refine((text) => parseRange(text) !== undefined, 'must be an address or a CIDR range'))

const unlessOff = <Schema extends z.core.$ZodType>(schema: Schema) =>
  withShorthand(false, {}, schema)

/** The input that `definePolicy` accepts. `resolveAbuse` fills in the defaults. */
export const abuseSchema = partial({
  authenticationFailures: unlessOff(
    partial({ limit: wholeNumber(1, 1_000_000), windowSeconds, mode }),
  ),
  bans: unlessOff(
    partial({
      violations: wholeNumber(1, 1_000),
      windowSeconds,
      seconds: banSeconds,
      maxSeconds: banSeconds,
      mode,
      refuses: z.enum(['credentials', 'everything']),
    }),
  ),
  exempt: z.array(addresses).check(z.maxLength(1_000)),
})
