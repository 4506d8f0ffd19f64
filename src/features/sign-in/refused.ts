import { Denied } from '../../errors.ts'

/** Creates the refusal of a login. `check` names what failed, for the audit trail. */
export const signInRefused = (check: string, options?: ErrorOptions) =>
  new Denied({ code: 'sign_in_refused', check }, options)
