/** Runs `portcullis idp doctor`: finds out why a gateway refuses a token, or what an issuer needs. */

import { PRESETS } from '../../src/identity-providers/presets.ts'
import { textOf } from '../arguments.ts'
import { usage } from '../failure.ts'
import type { IdpDoctorOptions } from './configuration.ts'
import { examineIssuer } from './issuer.ts'
import { examineToken } from './token.ts'

/**
 * Examines a token, or an issuer if the argument is a URL. Prints all checks, and sets the exit code
 * to 1 if one failed. Throws a usage failure for options that are not valid.
 */
export async function examine(argument: string, options: IdpDoctorOptions): Promise<void> {
  const { preset } = options
  if (preset !== undefined && !Object.hasOwn(PRESETS, preset)) {
    throw usage(`--preset: must be one of ${Object.keys(PRESETS).join(', ')}`)
  }
  if (/^https?:\/\//i.test(argument)) return examineIssuer(argument, options)
  const text = await textOf(argument)
  return examineToken(text.replace(/^Bearer\s+/i, ''), options)
}
