/** All cases from the field. Each file has those of one subject. */
import type { FieldCase } from './case.ts'
import { credentialCases } from './credential-cases.ts'
import { httpCases } from './http-cases.ts'
import { laterCases } from './later-cases.ts'
import { oauthCases } from './oauth-cases.ts'
import { oddTokenCases } from './odd-token-cases.ts'
import { reportCases } from './report-cases.ts'
import { serviceCases } from './service-cases.ts'
import { tokenCases } from './token-cases.ts'
import { trialCases } from './trial-cases.ts'
import { wireCases } from './wire-cases.ts'

export const FIELD_CASES: readonly FieldCase[] = [
  ...httpCases,
  ...wireCases,
  ...tokenCases,
  ...oddTokenCases,
  ...credentialCases,
  ...serviceCases,
  ...oauthCases,
  ...trialCases,
  ...reportCases,
  ...laterCases,
]
