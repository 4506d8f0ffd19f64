/** What an operator says who wants somebody to be forgotten. */
import * as z from 'zod'
import { issuerName, name } from './names.ts'

/** The body of `POST /-/admin/audit/erasures`. The issuer need not be trusted any more. */
export const newErasureSchema = z.strictObject({
  subject: name(255).describe('`sub` of whom the audit trail is to forget'),
  issuer: issuerName.describe('who vouched for it, as events tell it'),
})
