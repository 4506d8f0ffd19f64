/** Schema of an erasure that an operator orders. */
import * as z from 'zod'
import { issuerName, name } from './operator-names.ts'

/** The body of `POST /-/admin/audit/erasures`. The issuer does not have to be trusted any more. */
export const newErasureSchema = z.strictObject({
  subject: name(255).describe('`sub` of whom the audit trail is to forget'),
  issuer: issuerName.describe('who vouched for it, as events tell it'),
})
