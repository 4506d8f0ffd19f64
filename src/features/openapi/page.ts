/** Renders the OpenAPI document as one HTML page, without scripts or external resources. */

import type { SecurityScheme } from '../../routes/operation.ts'
import type {
  DocumentedOperation,
  DocumentedResponse,
  JsonSchema,
  OpenApiDocument,
} from './document.ts'

const FORM = 'application/x-www-form-urlencoded'

/** No scripts, no external resources, no framing. Styles are inline. */
export const docsHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
}

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid; }
section { margin: 2.5rem 0; }
code, pre { font: 0.9em/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; }
tbody tr { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
small { opacity: 0.7; }
nav ul { columns: 18rem; padding-left: 1.25rem; }
`

interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: DocumentedOperation
}

export function docsPage(document: OpenApiDocument): string {
  const { info, paths, tags } = document
  const entries: Entry[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const groups = tags.map(({ name }) => ({
    name,
    entries: entries.filter(({ operation }) => operation.tags[0] === name),
  }))
  const links = groups.map(
    (group) => `<h2>${escaped(group.name)}</h2><ul>${group.entries.map(linkOf).join('')}</ul>`,
  )
  const sections = groups.map(
    (group) =>
      `<h2>${escaped(group.name)}</h2>\n${group.entries
        .map(({ path, method, operation }) => operationSection(document, path, method, operation))
        .join('\n')}`,
  )
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escaped(info.title)}</title><style>${STYLE}</style></head><body>`,
    `<h1>${escaped(info.title)}</h1><p>${prose(info.description)}</p>`,
    '<p>Refusals are problem documents (RFC 9457). Refusals of <code>/oauth</code> are OAuth errors (RFC 6749).</p>',
    `<nav>${links.join('\n')}</nav>`,
    `<main>${sections.join('\n')}</main>`,
    '</body></html>\n',
  ].join('\n')
}

const linkOf = ({ operation: { operationId, summary } }: Entry) =>
  `<li><a href="#${escaped(operationId)}">${escaped(summary)}</a></li>`

function operationSection(
  document: OpenApiDocument,
  path: string,
  method: string,
  operation: DocumentedOperation,
): string {
  const { operationId, summary, description, parameters = [], requestBody } = operation
  const name = `${method.toUpperCase()} ${path}`
  return [
    `<section id="${escaped(operationId)}">`,
    `<h3><code>${escaped(name)}</code> ${escaped(summary)}</h3>`,
    ...(description ?? '')
      .split('\n\n')
      .filter((paragraph) => paragraph !== '')
      .map((paragraph) => `<p>${prose(paragraph)}</p>`),
    parameters.length === 0 ? '\n' : parametersPart(parameters),
    requestBody ? bodyPart(requestBody) : '',
    '<h4>Responses</h4>',
    responsesPart(document, operation),
    '<h4>Example</h4>',
    `<pre><code>${escaped(formatCurl(document, path, method, operation))}</code></pre>`,
    '</section>',
  ].join('\n')
}

function parametersPart(parameters: NonNullable<DocumentedOperation['parameters']>): string {
  const rows = parameters.map((parameter) => [
    nameCell(parameter.name, parameter.required),
    parameter.in,
    escaped(wordsOf(parameter.schema)),
    prose(parameter.description ?? ''),
  ])
  return `<h4>Parameters</h4>\n${table(['parameter', 'in', 'type', ''], rows)}`
}

const nameCell = (name: string, required: boolean) =>
  `<code>${escaped(name)}</code>${required ? '' : ' <small>optional</small>'}`

function bodyPart({ required, content }: NonNullable<DocumentedOperation['requestBody']>): string {
  const parts = Object.entries(content).map(
    ([mediaType, { schema }]) => `<p><code>${escaped(mediaType)}</code></p>${membersTable(schema)}`,
  )
  return `<h4>Body${required ? '' : ' <small>optional</small>'}</h4>${parts.join('')}`
}

function responsesPart(document: OpenApiDocument, { responses }: DocumentedOperation): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    const described = resolved(document, response)
    const types = Object.entries(described.content ?? {}).map(
      ([mediaType, { schema }]) =>
        `<code>${escaped(mediaType)}</code>${'$ref' in schema ? '' : membersTable(schema)}`,
    )
    const headers = Object.entries(described.headers ?? {}).map(
      ([name, { description }]) => `<br><code>${escaped(name)}</code>: ${prose(description)}`,
    )
    return [status, prose(described.description) + headers.join(''), types.join('<br>')]
  })
  return table(['status', '', 'body'], rows)
}

function resolved(
  { components }: OpenApiDocument,
  response: DocumentedOperation['responses'][string],
): DocumentedResponse {
  if (!('$ref' in response)) return response
  const name = response.$ref.split('/').at(-1) ?? ''
  return components.responses[name] ?? { description: '' }
}

/** Renders the call as a command. The reader replaces the names in capitals. */
function formatCurl(
  { components }: OpenApiDocument,
  path: string,
  method: string,
  operation: DocumentedOperation,
): string {
  const [name = ''] = operation.security.flatMap((one) => Object.keys(one))
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$PORTCULLIS_URL${path}"`,
  ]
  lines.push(...credentialsFor(components.securitySchemes[name]))
  for (const [mediaType, { example = {} }] of Object.entries(
    operation.requestBody?.content ?? {},
  )) {
    if (mediaType === FORM) {
      for (const [name, value] of Object.entries(example)) lines.push(`-d '${name}=${value}'`)
    } else {
      lines.push(`-H 'Content-Type: ${mediaType}'`, `-d '${JSON.stringify(example)}'`)
    }
  }
  return lines.join(' \\\n  ')
}

/** Returns the option of curl for a credential. */
function credentialsFor(scheme: SecurityScheme | undefined): readonly string[] {
  if (scheme === undefined) return []
  if (scheme.type === 'apiKey')
    return [scheme.in === 'cookie' ? `-b "${scheme.name}=$TOKEN"` : `-H "${scheme.name}: $TOKEN"`]
  return scheme.scheme === 'basic'
    ? ['-u "$CLIENT_ID:$CLIENT_SECRET"']
    : ['-H "Authorization: Bearer $TOKEN"']
}

/** The parts of a JSON Schema that are shown. */
interface Shown {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: Shown
  readonly anyOf?: readonly Shown[]
  readonly properties?: Readonly<Record<string, Shown>>
  readonly required?: readonly string[]
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

/** The bounds that zod adds to every integer; they are not shown. */
const NO_BOUND = Number.MAX_SAFE_INTEGER

function membersTable(schema: JsonSchema): string {
  const rows = [...membersOf(schema as Shown, '')]
  return rows.length === 0 ? '' : table(['member', 'type', ''], rows)
}

function* membersOf(schema: Shown, prefix: string): Generator<readonly string[]> {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield [
      nameCell(prefix + name, schema.required?.includes(name) === true),
      escaped(wordsOf(member)),
      prose(member.description ?? ''),
    ]
    const inner = member.items ?? member
    if (inner.properties) yield* membersOf(inner, `${prefix}${name}${member.items ? '[]' : ''}.`)
  }
}

function wordsOf(schema: Shown): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1) ?? ''
  if (schema.enum) return schema.enum.map(String).join(' | ')
  if (schema.const !== undefined) return String(schema.const)
  if (schema.anyOf) return schema.anyOf.map(wordsOf).join(' or ')
  if (schema.items) return `array of ${wordsOf(schema.items)}${bounds(schema, 'Items')}`
  const type = [schema.type ?? 'anything'].flat().join(' or ')
  const named = schema.format ? `${type} (${schema.format})` : type
  return named + bounds(schema, 'Length') + bounds(schema, 'imum')
}

/** Returns a text such as `, 1 to 200`; empty without bounds. */
function bounds(schema: Shown, of: 'Items' | 'Length' | 'imum'): string {
  const [least, most] = [schema[`min${of}`], schema[`max${of}`]]
  const upTo = most !== undefined && most < NO_BOUND ? most : undefined
  const from = least !== undefined && least > -NO_BOUND ? least : undefined
  if (upTo === undefined) return from === undefined ? '' : `, at least ${from}`
  return from === undefined ? `, at most ${upTo}` : `, ${from} to ${upTo}`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a text for an element or a quoted attribute. */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

/** Escapes a text, and renders text between backticks as `<code>`. */
function prose(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

/** Renders a table. Cells are HTML. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((cell) => `<th scope="col">${cell}</th>`).join('')
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table>`
}
