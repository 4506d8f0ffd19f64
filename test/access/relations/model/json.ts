/** Short constructors for models in OpenFGA's JSON. */

type Json = Record<string, unknown>

export const direct = { this: {} }
export const computed = (relation: string): Json => ({ computedUserset: { relation } })
export const from = (relation: string, tupleset: string): Json => ({
  tupleToUserset: { tupleset: { relation: tupleset }, computedUserset: { relation } },
})
export const union = (...child: unknown[]): Json => ({ union: { child } })
export const intersection = (...child: unknown[]): Json => ({ intersection: { child } })
export const difference = (base: unknown, subtract: unknown): Json => ({
  difference: { base, subtract },
})

export const user = { type: 'user' }
export const anyUser = { type: 'user', wildcard: {} }
export const usersetOf = (type: string, relation: string): Json => ({ type, relation })

export function typeOf(
  type: string,
  relations: Json = {},
  directTypes: Record<string, readonly unknown[]> = {},
): Json {
  const metadata = Object.entries(directTypes).map(([relation, types]) => [
    relation,
    { directly_related_user_types: types },
  ])
  return { type, relations, metadata: { relations: Object.fromEntries(metadata) } }
}

/** A model with users and the given types. */
export const modelOf = (...types: unknown[]): Json => ({
  schema_version: '1.1',
  type_definitions: [typeOf('user'), ...types],
})

/** A model of users and documents. */
export const documents = (relations: Json, directTypes: Record<string, readonly unknown[]> = {}) =>
  modelOf(typeOf('document', relations, directTypes))
