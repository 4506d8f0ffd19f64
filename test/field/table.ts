/** All cases from the field. Each file has those of one subject. */
import type { FieldCase } from './case.ts'
import { credentialCases } from './credential-cases.ts'
import { httpCases } from './http-cases.ts'
import { oauthCases } from './oauth-cases.ts'
import { serviceCases } from './service-cases.ts'
import { tokenCases } from './token-cases.ts'
import { trialCases } from './trial-cases.ts'

export const FIELD_CASES: readonly FieldCase[] = [
  ...httpCases,
  ...tokenCases,
  ...credentialCases,
  ...serviceCases,
  ...oauthCases,
  ...trialCases,
]
