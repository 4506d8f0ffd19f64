/** What the parts of the schema generator share. */
import type { Code } from '../code.ts'
import type { Document } from '../document.ts'
import type { Located } from '../located.ts'
import type { Notes } from '../notes.ts'

export interface SchemaContext {
  readonly document: Document
  readonly notes: Notes
  /** Returns the code of a schema. `place` is its place for notes. */
  code(schema: Located, place: string): Code
  /** Returns the constant of the schema that `schema` references. */
  reference(schema: Located, place: string): Code
  /** Returns the name of a function of `portcullis/openapi-routes`, which the module then imports. */
  use(name: string): string
}
