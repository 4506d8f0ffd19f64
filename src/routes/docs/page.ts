/** Renders the OpenAPI document as one HTML page, without scripts or external resources. */

import type { DocumentedOperation, OpenApiDocument } from '../openapi/document.ts'
import { escaped, prose } from './html.ts'
import { operationSection } from './operation.ts'

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

/** Renders the whole document. */
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
    '<p>Refusals are problem documents (RFC 9457), at <code>/oauth</code> OAuth errors.</p>',
    `<nav>${links.join('\n')}</nav>`,
    `<main>${sections.join('\n')}</main>`,
    '</body></html>\n',
  ].join('\n')
}

function linkOf({ operation: { operationId, summary } }: Entry): string {
  return `<li><a href="#${escaped(operationId)}">${escaped(summary)}</a></li>`
}
