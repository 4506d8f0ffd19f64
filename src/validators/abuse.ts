/** Schema of a policy's `abuse`. */
import ipaddr from 'ipaddr.js'
import { modeSchema as mode } from './mode.ts'
import * as z from './zod.ts'

const MAX_WINDOW_SECONDS = 86_400
/** One year, as for bans by operators. */
const MAX_BAN_SECONDS = 31_536_000
const MAX_EXEMPT = 1_000

const windowSeconds = z.int().check(z.minimum(1), z.maximum(MAX_WINDOW_SECONDS))
const banSeconds = z.int().check(z.minimum(1), z.maximum(MAX_BAN_SECONDS))

/** An address or a CIDR range. IPv4 must have four decimal parts. */
const addresses = z.string().check(z.refine(isAddressOrRange, 'must be an address or a CIDR range'))

/** Accepts an object or `false`. Not a union, because its errors would not name the field. */
const unlessOff = <Schema extends z.core.$ZodType>(schema: Schema) =>
  z.pipe(
    z.transform((value) => (value === false ? {} : value)),
    schema,
  )

/** The input that `definePolicy` accepts. `abuseOf` fills in the defaults. */
export const abuseSchema = z.partial(
  z.strictObject({
    authenticationFailures: unlessOff(
      z.partial(
        z.strictObject({
          limit: z.int().check(z.minimum(1), z.maximum(1_000_000)),
          windowSeconds,
          mode,
        }),
      ),
    ),
    bans: unlessOff(
      z.partial(
        z.strictObject({
          violations: z.int().check(z.minimum(1), z.maximum(1_000)),
          windowSeconds,
          seconds: banSeconds,
          maxSeconds: banSeconds,
          mode,
        }),
      ),
    ),
    exempt: z.array(addresses).check(z.maxLength(MAX_EXEMPT)),
  }),
)

function isAddressOrRange(text: string): boolean {
  const [base = '', ...bits] = text.split('/')
  if (!ipaddr.IPv4.isValidFourPartDecimal(base) && !ipaddr.IPv6.isValid(base)) return false
  return bits.length === 0 || ipaddr.isValidCIDR(text)
}
