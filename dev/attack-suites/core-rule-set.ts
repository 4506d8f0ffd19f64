/** Builds the requests of the regression tests of the OWASP Core Rule Set from their files. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import * as z from 'zod/mini'
import type { Case } from './case.ts'

/** The folders of attacks. The others test the protocol, methods, scanners and responses. */
const ATTACKS = /REQUEST-(93\d|94[1-4])-/
const logSchema = z.looseObject({
  expect_ids: z.optional(z.array(z.number())),
  no_expect_ids: z.optional(z.array(z.number())),
})
const inputSchema = z.looseObject({
  method: z._default(z.string(), 'GET'),
  uri: z._default(z.string(), '/'),
  headers: z._default(z.record(z.string(), z.coerce.string()), {}),
  data: z.optional(z.string()),
  encoded_request: z.optional(z.string()),
})
const fileSchema = z.looseObject({
  rule_id: z.number(),
  tests: z.array(
    z.looseObject({
      test_id: z.number(),
      stages: z.array(
        z.looseObject({
          input: inputSchema,
          output: z.looseObject({ log: z.optional(logSchema) }),
        }),
      ),
    }),
  ),
})

/** Headers of the client's connection, which the HTTP client sets. */
const OWN_HEADERS = /^(?:host|connection|content-length|transfer-encoding|accept-encoding)$/i

/**
 * Returns the requests with one stage. A request that must not match one rule of the set counts as
 * harmless, although it may be an attack of another kind.
 */
export function coreRuleSetCases(folder: string): Case[] {
  const root = join(folder, 'tests', 'regression', 'tests')
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => ATTACKS.test(file) && file.endsWith('.yaml'))
    .sort()
    .flatMap((file) => casesOf(join(root, file), file.split(/[\\/]/)[0] ?? ''))
}

function casesOf(path: string, group: string): Case[] {
  const { rule_id: rule, tests } = fileSchema.parse(load(readFileSync(path, 'utf8')))
  return tests.flatMap(({ test_id: test, stages }) => {
    const [stage, ...others] = stages
    if (stage === undefined || others.length > 0) return []
    const { input, output } = stage
    const { expect_ids: expected, no_expect_ids: unexpected } = output.log ?? {}
    if (input.encoded_request !== undefined) return []
    if (expected === undefined && unexpected === undefined) return []
    const headers = Object.entries(input.headers).filter(([name]) => !OWN_HEADERS.test(name))
    const hasType = headers.some(([name]) => name.toLowerCase() === 'content-type')
    if (input.data !== undefined && !hasType)
      headers.push(['Content-Type', 'application/x-www-form-urlencoded'])
    return [
      {
        group,
        isAttack: expected !== undefined,
        name: `${rule}-${test} ${input.method} ${input.uri} ${input.data ?? ''}`.slice(0, 300),
        method: input.method,
        target: input.uri.startsWith('/') ? input.uri : `/${input.uri}`,
        headers: Object.fromEntries(headers),
        ...(input.data !== undefined && { body: input.data }),
      },
    ]
  })
}
