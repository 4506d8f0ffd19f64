/** The tables of policy tests, and their check. A misspelled field would test another caller. */
import * as z from 'zod/mini'
import { toDotPath } from 'zod/v4/core'
import type { Policy } from '../policy/policy.ts'
import type { ProblemCode } from '../problems/problem.ts'
import { withSuggestion } from '../suggestions/did-you-mean.ts'
import { issuesOf } from '../validators/configuration.ts'
import type { PolicyTesterOptions } from './policy-tester.ts'
import type { Caller, TestedApiKey, TestedRequest } from './tested-request.ts'

/** One row: a request to a gateway that has seen no other, so that no row affects another one. */
export interface PolicyTestRow extends TestedRequest {
  /** Names the row in failures. */
  readonly name?: string
  /** Method and path: `GET /orders/1`. */
  readonly request: string
  /** `allowed`, the code of the problem document, or the status of the response. */
  readonly expect: 'allowed' | ProblemCode | number
}

/** The default export of a file that `portcullis policy test` runs. */
export interface PolicyTestTable extends PolicyTesterOptions {
  readonly policy: Policy
  readonly rows: readonly PolicyTestRow[]
}

/** A field for each member of a type, so that none is forgotten. */
type FieldsOf<Type> = { readonly [Name in keyof Required<Type>]: z.core.$ZodType }

const text = z.optional(z.string())
const texts = z.optional(z.array(z.string()))
const textOrTexts = z.optional(z.union([z.string(), z.array(z.string())]))
const members = z.optional(z.record(z.string(), z.unknown()))
const anything = z.optional(z.unknown())

const caller = {
  issuer: text,
  sub: text,
  roles: texts,
  scope: textOrTexts,
  client: text,
  tenant: text,
  session: text,
  audience: textOrTexts,
  expiresInSeconds: z.optional(z.number()),
  claims: members,
  header: members,
} satisfies FieldsOf<Caller>

const apiKey = {
  sub: z.string(),
  roles: texts,
  scope: texts,
  tenant: text,
  plan: text,
} satisfies FieldsOf<TestedApiKey>

const row = {
  name: text,
  request: z.string(),
  expect: z.union([z.string(), z.number()], 'must be "allowed", a problem code, or a status'),
  as: z.optional(z.strictObject(caller)),
  token: text,
  apiKey: z.optional(z.strictObject(apiKey)),
  dpop: z.optional(z.boolean()),
  source: anything,
  host: text,
  address: text,
  body: anything,
  headers: z.optional(z.record(z.string(), z.string())),
} satisfies FieldsOf<PolicyTestRow>

const table = {
  policy: z.unknown(),
  rows: z.array(z.unknown()),
  issuers: texts,
  tokenSources: anything,
  origin: anything,
  relations: anything,
  startMs: z.optional(z.number()),
} satisfies FieldsOf<PolicyTestTable>

const rowSchema = z.strictObject(row)
const tableSchema = z.strictObject(table)

/** Throws `TypeError` if a table has a field that is unknown or has the wrong type. */
export function requireTable(value: object): void {
  for (const issue of issuesOf(tableSchema, value))
    throw new TypeError(describeMistake(issue, { '': table }))
}

/** Throws the same for the row with this index. */
export function requireRow(value: unknown, index: number): void {
  for (const issue of issuesOf(rowSchema, value))
    throw new TypeError(
      `row ${index + 1}: ${describeMistake(issue, { '': row, as: caller, apiKey })}`,
    )
}

/** Describes a mistake, and suggests a field. `fields` are the known ones by the place of their object. */
function describeMistake(
  issue: z.core.$ZodIssue,
  fields: Readonly<Record<string, object>>,
): string {
  const place = toDotPath(issue.path)
  const prefix = place === '' ? '' : `${place}: `
  if (issue.code !== 'unrecognized_keys') return prefix + issue.message
  const [unknown = ''] = issue.keys
  const known = Object.keys(fields[place] ?? {})
  return withSuggestion(`${prefix}unknown field "${unknown}"`, unknown, known)
}
