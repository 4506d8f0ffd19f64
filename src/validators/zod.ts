/** `zod/mini` with the messages of `zod`: less than half of its size (decision 0056). */
import { en } from 'zod/locales'
import { config } from 'zod/mini'

// A locale that the application configured stays.
if (config().localeError === undefined) config(en())

export * from 'zod/mini'
