/** The variables of the server on Node. */
import * as z from 'zod/mini'
import { networks } from './networks.ts'
import { converted } from './schema-parts.ts'

const MAX_PORT = 65_535

const port = converted(
  z
    .string()
    .check(
      z.refine(
        (text) => /^\d{1,5}$/.test(text) && Number(text) <= MAX_PORT,
        `must be a number from 0 to ${MAX_PORT}`,
      ),
    ),
  Number,
)

export const serverVariables = {
  PORT: z.optional(port),
  HOST: z.optional(
    z
      .string()
      .check(z.regex(/^[\w.:%-]+$/, 'must be an address such as 127.0.0.1, or the name of a host')),
  ),
  TRUSTED_PROXIES: z.optional(networks),
  PROXY_HEADER: z.optional(
    z.enum(['x-forwarded-for', 'forwarded'], 'must be x-forwarded-for or forwarded'),
  ),
  TLS_CERT_FILE: z.optional(z.string()),
  TLS_KEY_FILE: z.optional(z.string()),
}

const schema = z.object(serverVariables)

/** Reads the settings of valid variables. Returns none for variables with mistakes. */
export const serverSettings = (variables: unknown): z.output<typeof schema> =>
  schema.safeParse(variables).data ?? {}
