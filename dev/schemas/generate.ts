/**
 * Generates the JSON Schemas of configuration that users write as JSON, from the schemas with which the gateway
 * checks it. What JSON Schema cannot express is left out: such a value is refused at the start only.
 */
import * as z from 'zod/mini'
import { relationModelSchema } from '../../src/access/relations/model-schema.ts'
import { configuredClients } from '../../src/features/authorization-server/schemas/client.ts'
import { signInClientSchema } from '../../src/features/sign-in/schema.ts'
import { PRESETS, type Preset } from '../../src/identity-providers/presets.ts'
import { claimSources, shortPath } from '../../src/validators/claim-path.ts'
import { issuer } from '../../src/validators/issuer.ts'
import { issuerClients } from '../../src/validators/issuer-client.ts'
import { namePattern } from '../../src/validators/name-pattern.ts'
import { OTHER_MEANING, tokenHeader } from '../../src/validators/token-source.ts'
import { httpUrl, privateUrl, webOrigin } from '../../src/validators/variables.ts'
import { describeFields } from './descriptions.ts'
import type { Described } from './types.ts'

type JsonSchema = z.core.JSONSchema.BaseSchema

/** The subpath of the package below which the schemas are: `portcullis/schemas/issuers.json`. */
export const FOLDER = 'schemas'

const TITLES: Readonly<Record<keyof Described, string>> = {
  issuers:
    'Issuers whose access tokens a Portcullis gateway accepts: ISSUERS, or the list of defineIssuers',
  clients: 'OAuth clients of a Portcullis gateway: CLIENTS',
  'issuer-clients': 'A Portcullis gateway as a client of issuers: ISSUER_CLIENTS',
  'relation-model':
    'An authorization model in the format of OpenFGA, for relations() of Portcullis',
}

/** Returns the texts of the schemas, by the name of the file in {@link FOLDER}. */
export function generateSchemas(): ReadonlyMap<string, string> {
  const schemas: Record<keyof Described, JsonSchema> = {
    issuers: issuersSchema(),
    clients: clientsSchema(),
    'issuer-clients': issuerClientsSchema(),
    'relation-model': modelSchema(),
  }
  // The types of both libraries describe the same documents.
  describeFields(schemas as Parameters<typeof describeFields>[0])
  return new Map(
    (Object.keys(TITLES) as (keyof Described)[]).map((name) => {
      const { $schema, ...rest } = schemas[name]
      const text = JSON.stringify({ $schema, title: TITLES[name], ...rest }, undefined, 2)
      return [`${name}.json`, `${text}\n`]
    }),
  )
}

const LOOPBACK = 'localhost|[^/?#@:]+\\.localhost|127(?:\\.\\d+){3}|\\[::1\\]'
const PRIVATE_ORIGIN = `(?:${ignoringCase('https')}://[^/?#@\\s]+|${ignoringCase('http')}://(?:${LOOPBACK})(?::\\d+)?)`

/** What the checks of a schema mean in JSON Schema. */
const REFINEMENTS = new Map<z.core.$ZodType, JsonSchema>([
  [httpUrl, { format: 'uri', pattern: `^${ignoringCase('http')}[sS]?://[^/?#@\\s]+(?:[/?#]|$)` }],
  [privateUrl, { format: 'uri', pattern: `^${PRIVATE_ORIGIN}(?:[/?#]|$)` }],
  [webOrigin, { pattern: '^https?://[^*/?#@A-Z\\s]+$' }],
  [namePattern, { pattern: '^[^*]*\\*?[^*]*$' }],
  [shortPath, { minLength: 1 }],
  [tokenHeader, { not: { pattern: ignoringCase(OTHER_MEANING.source) } }],
])

/** Converts a schema of the gateway. Comments are added later. */
function converted(schema: z.core.$ZodType): JsonSchema {
  return z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      Object.assign(jsonSchema, REFINEMENTS.get(zodSchema))
      if (zodSchema === claimSources) Object.assign(jsonSchema.anyOf?.[2] ?? {}, CONTAINS_LIST)
      // Flags of an expression are lost.
      for (const { _zod: check } of zodSchema._zod.def.checks ?? []) {
        const pattern = 'pattern' in check.def ? check.def.pattern : undefined
        if (pattern instanceof RegExp && pattern.flags.includes('i'))
          jsonSchema.pattern = ignoringCase(pattern.source)
      }
    },
  })
}

/** An array of texts alone is one path. */
const CONTAINS_LIST: JsonSchema = { contains: { type: 'array' } }

/** Returns an expression that means the same without the flag `i`. */
function ignoringCase(source: string): string {
  return source.replaceAll(/\\.|\[[^\]]*\]|[a-z]/gi, (part) => {
    if (part.startsWith('\\')) return part
    if (part.startsWith('[')) return part.replace('a-z', 'a-zA-Z')
    return `[${part.toLowerCase()}${part.toUpperCase()}]`
  })
}

const required = (...names: readonly string[]): JsonSchema => ({ required: [...names] })
const not = (schema: JsonSchema): JsonSchema => ({ not: schema })
/** What a value must match if it matches `condition`. Editors explain it better than a choice. */
const when = (condition: JsonSchema, rule: JsonSchema): JsonSchema =>
  Object.fromEntries([
    ['if', condition],
    ['then', rule],
  ])
const field = (name: string, schema: JsonSchema): JsonSchema => ({ properties: { [name]: schema } })

function issuersSchema(): JsonSchema {
  const { $schema, required: needed = [], properties = {}, ...entry } = converted(issuer)
  properties.jwks = {
    type: 'object',
    properties: {
      keys: {
        type: 'array',
        minItems: 1,
        items: { type: 'object', properties: { kty: { type: 'string' } }, required: ['kty'] },
      },
    },
    required: ['keys'],
  }
  const ofSeveralTenants: JsonSchema = {
    ...field('issuer', { pattern: '\\{tenantid\\}' }),
    ...required('issuer'),
  }
  const hasCall = (...rules: readonly JsonSchema[]): JsonSchema => ({
    anyOf: ['introspection', 'userinfo'].map((name) => ({
      ...required(name),
      ...field(name, { allOf: [...rules] }),
    })),
  })
  const isOpaque = field('form', { const: 'opaque' })
  const needsMetadata = not({
    anyOf: [
      ...[required('jwksUri'), required('jwks'), required('preset')],
      { allOf: [required('keySet'), hasCall(required('endpoint'))] },
    ],
  })
  return {
    ...($schema !== undefined && { $schema }),
    type: 'array',
    items: {
      ...entry,
      properties: {
        preset: { type: 'string', enum: Object.keys(PRESETS) },
        ...properties,
      },
      allOf: [
        when(not(required('preset')), required(...needed)),
        not(required('jwksUri', 'jwks')),
        not(required('introspection', 'userinfo')),
        when(required('keySet'), {
          allOf: [not(required('jwksUri')), not(required('jwks')), hasCall(isOpaque)],
        }),
        when(ofSeveralTenants, required('tenants')),
        when(required('issuer', 'tenants'), ofSeveralTenants),
        when(
          needsMetadata,
          field('issuer', {
            pattern: `^${PRIVATE_ORIGIN}(?:/[^?#]*)?$`,
          }),
        ),
        ...Object.entries(PRESETS).flatMap(([name, preset]) => rulesOf(name, preset, needed)),
      ],
    },
  }
}

/** Returns what an entry with a preset must have. */
function rulesOf(name: string, preset: Preset, needed: readonly string[]): readonly JsonSchema[] {
  const lacking = needed.filter((field) => preset[field as 'issuer' | 'audience'] === undefined)
  const claims = preset.restrict ?? []
  const rules: readonly JsonSchema[] = [
    ...(lacking.length > 0 ? [required(...lacking)] : []),
    ...(preset.issuer?.includes('{tenantid}')
      ? [when(not(required('issuer')), required('tenants'))]
      : []),
    ...(claims.length > 0
      ? [
          {
            ...required('require'),
            ...field('require', { anyOf: claims.map((claim) => required(claim)) }),
          },
        ]
      : []),
  ]
  if (rules.length === 0) return []
  const isNamed = { ...field('preset', { const: name }), ...required('preset') }
  return [when(isNamed, { allOf: [...rules] })]
}

/** base64url of 32 bytes: the last character has four bits. */
const SHA256 = '^[\\w-]{42}[AEIMQUYcgkosw048]$'

function clientsSchema(): JsonSchema {
  const schema = converted(configuredClients)
  const entry = schema.items as JsonSchema
  const secret = entry.properties?.secretSha256 as JsonSchema
  secret.pattern = SHA256
  const isPublic = { ...field('public', { const: true }), ...required('public') }
  entry.allOf = [
    when(not(isPublic), { oneOf: [required('secretSha256'), required('jwks')] }),
    when(required('profile'), required('jwks')),
  ]
  return schema
}

function issuerClientsSchema(): JsonSchema {
  const schema = converted(issuerClients)
  const { $schema: _, ...signIn } = converted(signInClientSchema)
  for (const entry of (schema.items as JsonSchema).anyOf as JsonSchema[])
    Object.assign(entry.properties ?? {}, { signIn: structuredClone(signIn) })
  return schema
}

function modelSchema(): JsonSchema {
  const schema = converted(relationModelSchema)
  for (const userset of Object.values(schema.definitions ?? {}))
    Object.assign(userset, { minProperties: 1, maxProperties: 1 })
  return schema
}
