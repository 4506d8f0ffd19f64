/**
 * Accounts for every node of a document: the module contains its meaning, or a note names it. A node
 * that the import did not record gets a note here, so nothing is dropped in silence.
 */
import { withSuggestion } from '../../src/suggestions/did-you-mean.ts'
import type { Located } from './located.ts'
import type { Notes } from './notes.ts'

export type Coverage = ReturnType<typeof createCoverage>

export interface NodeCounts {
  readonly total: number
  readonly imported: number
  /** Below a place that a note of this module names. */
  readonly noted: number
}

/** `way`: only the place of other nodes, such as `components`. */
type State = 'way' | 'used' | 'whole'

/** Members that describe a document, its responses, or requests that the API itself sends. */
const NO_EFFECT: ReadonlySet<string> = new Set([
  '$comment',
  '$defs',
  '$schema',
  'allowReserved',
  'callbacks',
  'components',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  'default',
  'definitions',
  'deprecated',
  'description',
  'discriminator',
  'encoding',
  'example',
  'examples',
  'externalDocs',
  'info',
  'links',
  'operationId',
  'readOnly',
  'responses',
  'securitySchemes',
  'summary',
  'tags',
  'title',
  'webhooks',
  'writeOnly',
  'xml',
])
/** Members that are often written in another way: `GET`, `request_body`. */
const KNOWN_MEMBERS = [
  'additionalProperties',
  'allOf',
  'anyOf',
  'content',
  'delete',
  'enum',
  'explode',
  'format',
  'get',
  'head',
  'items',
  'maximum',
  'maxItems',
  'maxLength',
  'minimum',
  'minItems',
  'minLength',
  'nullable',
  'oneOf',
  'options',
  'parameters',
  'patch',
  'paths',
  'pattern',
  'post',
  'properties',
  'put',
  'requestBody',
  'required',
  'schema',
  'security',
  'servers',
  'style',
  'type',
  'uniqueItems',
]
const OWN_EXTENSION = 'x-portcullis-'

export function createCoverage() {
  const states = new Map<string, Map<string, State>>()

  function statesIn(file: string): Map<string, State> {
    const known = states.get(file)
    if (known !== undefined) return known
    const created = new Map<string, State>()
    states.set(file, created)
    return created
  }

  function record({ file, pointer }: Located, state: 'used' | 'whole'): void {
    const inFile = statesIn(file)
    if (inFile.get(pointer) !== 'whole') inFile.set(pointer, state)
    for (
      let end = pointer.lastIndexOf('/');
      end >= 0 && !inFile.has(pointer.slice(0, end));
      end = pointer.lastIndexOf('/', end - 1)
    )
      inFile.set(pointer.slice(0, end), 'way')
  }

  return {
    /** Records a node whose meaning is imported or noted. Its members are recorded one by one. */
    use: (node: Located): void => record(node, 'used'),
    /** Records a node with everything below it. */
    useAll: (node: Located): void => record(node, 'whole'),
    /** Adds a note for each node that is not recorded. Returns the number of nodes. */
    report(roots: readonly Located[], notes: Notes): NodeCounts {
      let total = 0
      let noted = 0
      for (const root of roots) {
        const inFile = statesIn(root.file)
        const visit = (value: unknown, pointer: string, state: State): void => {
          total += 1
          if (state === 'whole') total += nodesBelow(value)
          if (state === 'whole' || typeof value !== 'object' || value === null) return
          for (const [name, member] of Object.entries(value)) {
            const place = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
            const known = inFile.get(place)
            if (known !== undefined) {
              visit(member, place, known)
              continue
            }
            const count = 1 + nodesBelow(member)
            total += count
            noted += count
            if (state === 'way') notes.ignored(`#${pointer}`, 'parts that no operation refers to')
            else noteMember(name, `#${place}`, Array.isArray(value), notes)
          }
        }
        visit(root.value, '', inFile.get('') ?? 'way')
      }
      return { total, imported: total - noted, noted }
    },
  }
}

function noteMember(name: string, place: string, isItem: boolean, notes: Notes): void {
  if (isItem) {
    notes.unmapped(place, 'is not imported: its value has the wrong type')
    return
  }
  const isOwn = name.startsWith(OWN_EXTENSION)
  if (!isOwn && (name.startsWith('x-') || NO_EFFECT.has(name))) {
    notes.ignored(name, 'has no effect on the requests that are accepted')
    return
  }
  const message =
    'is not imported: OpenAPI has no member of this name here, or its value has the wrong type'
  const isMisspelled = !isOwn && !KNOWN_MEMBERS.includes(name)
  notes.unmapped(place, isMisspelled ? withSuggestion(message, name, KNOWN_MEMBERS) : message)
}

function nodesBelow(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, member) => sum + 1 + nodesBelow(member), 0)
}
