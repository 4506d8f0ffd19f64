/** Changes of the headers of a request for an origin, or of an origin's response. */
import type { HeaderChanges } from '../../origin/definition.ts'

interface Fields {
  set(name: string, value: string): unknown
  delete(name: string): unknown
}

/** Creates the function that changes headers. */
export function headerChange({ set = {}, remove = [] }: HeaderChanges): (fields: Fields) => void {
  const values = Object.entries(set).map(([name, value]) => [name.toLowerCase(), value] as const)
  const names = remove.map((name) => name.toLowerCase())
  return function change(fields) {
    for (const name of names) fields.delete(name)
    for (const [name, value] of values) fields.set(name, value)
  }
}
