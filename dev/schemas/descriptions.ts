/** Reads the comments of types, as an editor shows them. */
import { join } from 'node:path'
import { API, type Checker, type Type } from 'typescript/unstable/sync'
import { ROOT } from '../root.ts'
import type { Described } from './types.ts'

/** The parts of a JSON Schema that contain fields, or schemas with fields. */
export interface FieldSchema {
  description?: string
  readonly $ref?: string
  readonly properties?: Record<string, FieldSchema>
  readonly items?: FieldSchema
  readonly additionalProperties?: FieldSchema | boolean
  readonly anyOf?: readonly FieldSchema[]
  readonly oneOf?: readonly FieldSchema[]
  readonly definitions?: Readonly<Record<string, FieldSchema>>
}

const TYPES = join(ROOT, 'dev/schemas/types.ts')
const PROJECT = join(ROOT, 'dev/schemas/tsconfig.json')

/**
 * Adds a description to each field of the schemas: the comment of the field in {@link Described}. Throws if a field
 * has none.
 */
export function describeFields(schemas: Readonly<Record<keyof Described, FieldSchema>>): void {
  const api = new API({ cwd: ROOT })
  try {
    const snapshot = api.updateSnapshot({ openProject: PROJECT })
    const project = snapshot.getProject(PROJECT)
    const file = project?.program.getSourceFile(TYPES)
    if (project === undefined || file === undefined) throw new Error(`${TYPES} cannot be read`)
    const { checker } = project
    const module = checker.getSymbolAtLocation(file)
    const described = module && checker.getMemberInModuleExports(module, 'Described')
    if (described === undefined) throw new Error(`${TYPES} must export Described`)
    const root = checker.getDeclaredTypeOfSymbol(described)
    for (const [name, schema] of Object.entries(schemas)) {
      const field = checker.getPropertyOfType(root, name)
      const type = field && checker.getTypeOfSymbol(field)
      if (type === undefined) throw new Error(`${TYPES} has no type for ${name}`)
      describe(schema, [type], { checker, root: schema, at: name, done: new Set() })
    }
  } finally {
    api.close()
  }
}

interface Walk {
  readonly checker: Checker
  /** The schema that contains the definitions. */
  readonly root: FieldSchema
  /** Path of the present schema, for messages. */
  readonly at: string
  /** Definitions that are described. */
  readonly done: Set<string>
}

function describe(schema: FieldSchema, types: readonly Type[], walk: Walk): void {
  const { checker } = walk
  const parts = types.flatMap(partsOf)
  const [, name] = /^#\/definitions\/(.+)$/.exec(schema.$ref ?? '') ?? []
  const definition = name === undefined ? undefined : walk.root.definitions?.[name]
  if (name !== undefined && definition !== undefined && !walk.done.has(name)) {
    walk.done.add(name)
    describe(definition, parts, walk)
  }
  for (const [field, value] of Object.entries(schema.properties ?? {})) {
    const at = `${walk.at}.${field}`
    const symbols = parts.flatMap((type) => checker.getPropertyOfType(type, field) ?? [])
    const comment = symbols
      .map((symbol) => checker.getDocumentationCommentOfSymbol(symbol))
      .find(Boolean)
    if (comment === undefined) throw new Error(`${at} has no comment in the types of ${TYPES}`)
    value.description = comment.replaceAll(/\s*\n\s*/g, ' ')
    const ofField = symbols.flatMap((symbol) => checker.getTypeOfSymbol(symbol) ?? [])
    describe(value, ofField, { ...walk, at })
  }
  for (const choice of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])])
    describe(choice, parts, walk)
  if (schema.items !== undefined)
    describe(schema.items, parts.flatMap(itemsOf(checker)), { ...walk, at: `${walk.at}[]` })
  if (typeof schema.additionalProperties === 'object') {
    const values = parts.flatMap((type) =>
      checker.getIndexInfosOfType(type).map(({ valueType }) => valueType),
    )
    describe(schema.additionalProperties, values, { ...walk, at: `${walk.at}.*` })
  }
}

/** Returns the members of a union, or the type itself. */
const partsOf = (type: Type): readonly Type[] =>
  type.isUnionType() ? type.getTypes().flatMap(partsOf) : [type]

const itemsOf = (checker: Checker) => (type: Type) =>
  checker.isArrayLikeType(type) && type.isTypeReference() ? checker.getTypeArguments(type) : []
