/**
 * `zod/mini` with the messages of `zod`, at less than half of its size, see
 * docs/decisions/0056-opt-in-features.md.
 */
import { en } from 'zod/locales'
import { config } from 'zod/mini'

// A locale that the application configured stays.
if (config().localeError === undefined) config(en())

export * from 'zod/mini'
