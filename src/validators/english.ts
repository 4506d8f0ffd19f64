/** The English messages of zod. `zod/mini` has no messages of its own. */
import { en } from 'zod/locales'
import { config, type core } from 'zod/mini'

let english: core.ParseContext<core.$ZodIssue> | undefined

/**
 * Returns the context of a parse with messages that are shown: in English, unless the application
 * configured other messages. A global configuration would be an effect of importing this module,
 * and would change the messages of the application.
 */
export function inEnglish(): core.ParseContext<core.$ZodIssue> | undefined {
  const { localeError, customError } = config()
  if (localeError !== undefined || customError !== undefined) return undefined
  english ??= { error: en().localeError }
  return english
}
