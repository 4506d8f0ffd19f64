/** Which check of a login has failed. */
import { Denied } from '../../../errors.ts'
import type { Check } from '../../../problems/checks.ts'

type SignInCheck = Check<'sign_in_refused'>

/** Checks of a response whose login has ended, with or without success. */
const USED: readonly (SignInCheck | undefined)[] = ['state_used', 'state_unknown']

/** Checks of a login that is valid, and does not meet the demand. */
const UNMET: readonly (SignInCheck | undefined)[] = [
  'acr',
  'auth_time_missing',
  'auth_time_old',
  'auth_time_unusable',
  'provider_unmet_authentication_requirements',
]

export const checkOf = (error: unknown): SignInCheck | undefined =>
  error instanceof Denied && error.denial.code === 'sign_in_refused'
    ? error.denial.check
    : undefined

export const isUsed = (failure: unknown): boolean => USED.includes(checkOf(failure))
export const isUnmet = (failure: unknown): boolean => UNMET.includes(checkOf(failure))
