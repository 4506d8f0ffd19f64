/**
 * Renders the OpenAPI document as one HTML page. It is complete without its script, which searches, and loads nothing
 * from other hosts.
 */
import type { DocumentedResponse, OpenApiDocument } from './document.ts'
import { type ExampleCall, formatCurl, formatFetch, tokenExample } from './examples.ts'
import { definitions, escaped, prose } from './markup.ts'
import { SCRIPT, STYLE } from './page-assets.ts'
import { describeValue, membersList } from './schema-words.ts'

const SCRIPT_PATH = '/-/docs.js'

/** The page and its fields, which are the same for each request. */
export type DocsPage = Awaited<ReturnType<typeof createDocsPage>>

/** Creates the page: no inline script, no other host, no framing. */
export async function createDocsPage(document: OpenApiDocument, publicUrl: string) {
  const [style, script] = await Promise.all([digestOf(STYLE), digestOf(SCRIPT)])
  return {
    html: docsPage(document, script, publicUrl),
    headers: {
      // The script has its path, because other scripts of this origin may be those of an application behind the gateway.
      // The digest permits it also at an address that is not the public one. No part comes from the request: caches keep the page.
      'Content-Security-Policy':
        `default-src 'none'; script-src ${new URL(publicUrl).origin}${SCRIPT_PATH} '${script}'; style-src '${style}'; ` +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'Referrer-Policy': 'no-referrer',
    },
  }
}

/** Returns the digest of a text as CSP and `integrity` write it. */
async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`
}

function docsPage(document: OpenApiDocument, script: string, publicUrl: string): string {
  const { info, paths, tags } = document
  const calls: ExampleCall[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ document, path, method, operation })),
  )
  const groups = tags.map(({ name }) => ({
    name,
    id: `tag_${name.replaceAll(/\W/g, '_')}`,
    calls: calls.filter(({ operation }) => operation.tags[0] === name),
  }))
  const links = [...groups, { name: 'Refusals', id: 'refusals' }].map(
    ({ name, id }) => `<li><a href="#${id}">${escaped(name)}</a></li>`,
  )
  const sections = groups.map(
    (group) =>
      `<section class="group" id="${group.id}"><h2>${escaped(group.name)}</h2>\n${group.calls.map(callPart).join('\n')}</section>`,
  )
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escaped(info.title)}: calls</title><style>${STYLE}</style>`,
    `<script src="${SCRIPT_PATH}" integrity="${script}" defer></script></head><body>`,
    `<header><h1>${escaped(info.title)}</h1><p>${prose(info.description)}</p></header>`,
    '<div class="tools"><label hidden>Search <input type="search" autocomplete="off" spellcheck="false"></label>',
    '<fieldset><legend>Examples</legend>',
    '<label><input type="radio" name="examples" id="curl" checked>curl</label>',
    '<label><input type="radio" name="examples" id="fetch">fetch</label></fieldset>',
    '<span role="status"></span></div>',
    `<div class="columns"><nav aria-label="Sections"><ul>${links.join('')}</ul></nav>`,
    `<main>${'/oauth/token' in paths ? tokenPart(publicUrl) : ''}${sections.join('\n')}${refusalsPart(document)}</main></div>`,
    '</body></html>\n',
  ].join('\n')
}

const tokenPart = (publicUrl: string): string =>
  `<section><h2>Get a token</h2><pre tabindex="0"><code>${escaped(tokenExample(publicUrl))}</code></pre></section>`

function callPart(call: ExampleCall): string {
  const { document, path, method, operation } = call
  const { operationId, summary, description, parameters = [], requestBody } = operation
  return [
    `<details class="call ${escaped(method)}">`,
    `<summary><h3><code>${escaped(`${method.toUpperCase()} ${path}`)}</code> ${escaped(summary)}</h3></summary>`,
    `<div class="inside" id="${escaped(operationId)}">`,
    ...(description ?? '')
      .split('\n\n')
      .filter((paragraph) => paragraph !== '')
      .map((paragraph) => `<p>${prose(paragraph)}</p>`),
    credentialsPart(call),
    parameters.length === 0
      ? ''
      : `<h4>Parameters</h4>${definitions(
          parameters.map(({ name, in: where, required, schema, description: text }) => {
            const [term, about] = describeValue(name, required, schema, text)
            return [`${term} <small>in the ${where}</small>`, about]
          }),
        )}`,
    requestBody ? bodyPart(requestBody) : '',
    '<h4>Responses</h4>',
    responsesPart(document, operation.responses),
    '<h4>Example</h4>',
    `<pre class="curl" tabindex="0"><code>${escaped(formatCurl(call))}</code></pre>`,
    `<pre class="fetch" tabindex="0"><code>${escaped(formatFetch(call))}</code></pre>`,
    '</div></details>',
  ].join('\n')
}

function credentialsPart({ document, operation }: ExampleCall): string {
  const schemes = operation.security.flatMap((one) => Object.keys(one))
  const texts = schemes.map((name) => document.components.securitySchemes[name]?.description ?? '')
  const known = [...new Set(texts)].filter((text) => text !== '')
  return known.length === 0
    ? ''
    : `<p><small>Credentials: ${prose(known.join(' Or: '))}</small></p>`
}

function bodyPart({
  required,
  content,
}: NonNullable<ExampleCall['operation']['requestBody']>): string {
  const parts = Object.entries(content).map(
    ([mediaType, { schema }]) => `<p><code>${escaped(mediaType)}</code></p>${membersList(schema)}`,
  )
  return `<h4>Body${required ? '' : ' <small>optional</small>'}</h4>${parts.join('')}`
}

/** Refusals are described once for all calls: here is only their status. */
function responsesPart(
  { components }: OpenApiDocument,
  responses: ExampleCall['operation']['responses'],
): string {
  const refusals: string[] = []
  const parts = Object.entries(responses).flatMap(([status, response]) => {
    const name = '$ref' in response ? (response.$ref.split('/').at(-1) ?? '') : ''
    if (Object.hasOwn(components.responses, name)) {
      refusals.push(`<a href="#${escaped(name)}">${status}</a>`)
      return []
    }
    return '$ref' in response ? [] : [responsePart(status, response)]
  })
  const list = refusals.length === 0 ? '' : `<p>Refusals: ${refusals.join(', ')}</p>`
  return parts.join('') + list
}

function responsePart(status: string, response: DocumentedResponse): string {
  const headers = Object.entries(response.headers ?? {}).map(
    ([name, { description }]) => `<br><code>${escaped(name)}</code>: ${prose(description)}`,
  )
  const bodies = Object.entries(response.content ?? {}).map(([mediaType, { schema }]) => {
    const members = '$ref' in schema ? '' : membersList(schema)
    const type = `<code>${escaped(mediaType)}</code>`
    return members === ''
      ? `<p>${type}</p>`
      : `<details><summary>${type}</summary>${members}</details>`
  })
  return `<p><strong>${status}</strong> ${prose(response.description)}${headers.join('')}</p>${bodies.join('')}`
}

function refusalsPart({ components }: OpenApiDocument): string {
  const parts = Object.entries(components.responses).map(
    ([name, response]) =>
      `<div id="${escaped(name)}">${responsePart(name.replace(/^\D+/, ''), response)}</div>`,
  )
  const { Problem, OAuthError } = components.schemas
  return [
    '<section id="refusals"><h2>Refusals</h2>',
    '<p>Refusals are problem documents (RFC 9457). Refusals of <code>/oauth</code> are OAuth errors (RFC 6749).</p>',
    `<details><summary>Problem</summary>${membersList(Problem)}</details>`,
    OAuthError ? `<details><summary>OAuthError</summary>${membersList(OAuthError)}</details>` : '',
    ...parts,
    '</section>',
  ].join('\n')
}
