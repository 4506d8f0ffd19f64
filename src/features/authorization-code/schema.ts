/** Schema of the authorization code flow in a policy. */
import * as z from 'zod/mini'
import { namePattern } from '../../validators/name-pattern.ts'
import { issuerName, PERMISSION } from '../../validators/names.ts'
import { text, wholeNumber } from '../../validators/schema-parts.ts'
import { privateScheme } from '../authorization-server/schemas/redirect-uri.ts'

const YEAR_SECONDS = 31_536_000
const hosts = z.array(
  namePattern.check(
    z.regex(/^[a-z\d.*-]+$/, 'must be a host in lower case, or a pattern such as *.example.com'),
  ),
)

export const authorizationCodeSchema = z.strictObject({
  scopes: z.optional(
    z.record(z.string().check(z.regex(PERMISSION, 'must be a permission: orders:read')), text(200)),
  ),
  sessionSeconds: z.optional(wholeNumber(300, YEAR_SECONDS)),
  redirectSchemes: z.optional(z.array(privateScheme)),
  documents: z.optional(
    z.union([
      z.literal(false),
      z.strictObject({
        allow: z.optional(hosts),
        deny: z.optional(hosts),
        loopback: z.optional(z.boolean()),
      }),
    ]),
  ),
  identityAssertions: z.optional(z.array(issuerName).check(z.minLength(1))),
  registration: z.optional(
    z.union([
      z.boolean(),
      z.strictObject({
        perAddress: z.optional(wholeNumber(1, 100_000)),
        unusedSeconds: z.optional(wholeNumber(60, YEAR_SECONDS)),
      }),
    ]),
  ),
})
