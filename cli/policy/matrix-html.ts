/** The matrix as one HTML page, without scripts, images or other files. */
import { visible } from '../text.ts'
import { headingOf, loginColumns, type Matrix, type MatrixRow } from './matrix.ts'

const STYLE = `
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem; color: #1b1b1b; background: #fff }
div { overflow-x: auto }
table { border-collapse: collapse }
caption { text-align: left; padding-bottom: .5rem }
th, td { border: 1px solid #767676; padding: .3rem .6rem; text-align: left; vertical-align: top }
thead th { background: #eee }
tbody th { font-family: ui-monospace, monospace; font-weight: 600 }
.yes { background: #d9f2dd }
.no { background: #fbe3e0 }
@media (prefers-color-scheme: dark) {
body { color: #eee; background: #1b1b1b }
thead th { background: #333 }
.yes { background: #16431f }
.no { background: #4f1c17 }
}`

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string) => visible(text).replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '')

/** Returns the page. Its words, not its colors, say what is allowed. */
export function htmlOf({ callers, rows }: Matrix): string {
  const logins = loginColumns({ rows })
  const headings = [
    ...['Route', ...callers, 'Permission', 'Relation', 'Limits'],
    ...logins.map(headingOf),
  ]
  const head = headings.map((text) => `<th scope="col">${escaped(text)}</th>`).join('')
  const body = rows.map((row) => `<tr>${rowOf(row, callers, logins)}</tr>`).join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Routes and roles</title>
<style>${STYLE}
</style>
</head>
<body>
<main>
<h1>Routes and roles</h1>
<div role="region" aria-labelledby="caption" tabindex="0">
<table>
<caption id="caption">Which callers the permissions of the policy admit to which routes. A relation is required in addition.</caption>
<thead><tr>${head}</tr></thead>
<tbody>
${body}
</tbody>
</table>
</div>
</main>
</body>
</html>`
}

function rowOf(
  row: MatrixRow,
  callers: readonly string[],
  logins: ReturnType<typeof loginColumns>,
) {
  const { route, permission, admits, relation, observed, limits } = row
  const cells = callers.map((caller) =>
    admits[caller] ? '<td class="yes">allowed</td>' : '<td class="no">refused</td>',
  )
  const isObserved = (name: string) => (observed.includes(name) ? ' (observed)' : '')
  const notes = [
    permission === null ? 'none' : permission + isObserved('permission'),
    relation === null ? 'none' : relation + isObserved('relation'),
    limits.length === 0 ? 'none' : limits.join('; '),
    ...logins.map((name) => row[name] ?? 'none'),
  ].map((text) => `<td>${escaped(text)}</td>`)
  return [`<th scope="row">${escaped(route)}</th>`, ...cells, ...notes].join('')
}
