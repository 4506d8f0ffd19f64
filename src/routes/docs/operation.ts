/** Renders one call on the page: its input, its responses, and an example. */
import type { DocumentedAnswer, DocumentedOperation, OpenApiDocument } from '../openapi/document.ts'
import { escaped, prose, table } from './html.ts'
import { membersTable, typeOf } from './schema.ts'

const FORM = 'application/x-www-form-urlencoded'

/** Renders the section of a call. */
export function operationSection(
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
    parameters.length === 0 ? '' : '<h4>Parameters</h4>',
    parameters.length === 0
      ? ''
      : table(
          ['parameter', 'in', 'type', ''],
          parameters.map((parameter) => [
            `<code>${escaped(parameter.name)}</code>${parameter.required ? '' : ' <small>optional</small>'}`,
            parameter.in,
            typeOf(parameter.schema),
            prose(parameter.description ?? ''),
          ]),
        ),
    requestBody ? bodyPart(requestBody) : '',
    '<h4>Answers</h4>',
    answersPart(document, operation),
    '<h4>Example</h4>',
    `<pre><code>${escaped(curlOf(path, method, operation))}</code></pre>`,
    '</section>',
  ].join('\n')
}

function bodyPart({ required, content }: NonNullable<DocumentedOperation['requestBody']>): string {
  const parts = Object.entries(content).map(
    ([mediaType, { schema }]) => `<p><code>${escaped(mediaType)}</code></p>${membersTable(schema)}`,
  )
  return `<h4>Body${required ? '' : ' <small>optional</small>'}</h4>${parts.join('')}`
}

function answersPart(document: OpenApiDocument, { responses }: DocumentedOperation): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    const answer = resolved(document, response)
    const types = Object.entries(answer.content ?? {}).map(
      ([mediaType, { schema }]) =>
        `<code>${escaped(mediaType)}</code>${'$ref' in schema ? '' : membersTable(schema)}`,
    )
    const headers = Object.entries(answer.headers ?? {}).map(
      ([name, { description }]) => `<br><code>${escaped(name)}</code>: ${prose(description)}`,
    )
    return [status, prose(answer.description) + headers.join(''), types.join('<br>')]
  })
  return table(['status', '', 'body'], rows)
}

function resolved(
  { components }: OpenApiDocument,
  response: DocumentedOperation['responses'][string],
): DocumentedAnswer {
  if (!('$ref' in response)) return response
  const name = response.$ref.split('/').at(-1) ?? ''
  return components.responses[name] ?? { description: '' }
}

/** Renders the call as a command. The reader replaces the names in capitals. */
function curlOf(path: string, method: string, operation: DocumentedOperation): string {
  const [scheme] = operation.security.flatMap((one) => Object.keys(one))
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$PORTCULLIS_URL${path}"`,
  ]
  if (scheme === 'operator') lines.push('-H "Authorization: Bearer $TOKEN"')
  if (scheme === 'client') lines.push('-u "$CLIENT_ID:$CLIENT_SECRET"')
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
