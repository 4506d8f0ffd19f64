import { Denied } from '../../errors.ts'
import type { Check } from '../../problems/checks.ts'

/** Creates the refusal of a login. `check` names what failed, for the audit trail. */
export const signInRefused = (check: Check<'sign_in_refused'>, options?: ErrorOptions) =>
  new Denied({ code: 'sign_in_refused', check }, options)
