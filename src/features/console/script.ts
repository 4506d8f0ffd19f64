/** The scripts of the console. All pages work without them. */

/** Adds a button to a text that the visitor has to copy. */
export const COPY_SCRIPT = `'use strict'
const field = document.getElementById('secret')
const button = document.createElement('button')
const status = document.createElement('span')
button.type = 'button'
button.textContent = 'Copy'
status.setAttribute('role', 'status')
button.addEventListener('click', async () => {
  field.select()
  try {
    await navigator.clipboard.writeText(field.value)
    status.textContent = 'Copied.'
  } catch {
    status.textContent = 'The browser does not allow it: press Ctrl+C or Cmd+C.'
  }
})
field.after(button, status)
`

/**
 * The script of the live pages. Decisions are written
 * as text. The figures of the overview are markup of the gateway, in which the browser runs no script.
 */
export const SCRIPT = `'use strict'
const box = document.getElementById('live')
const button = box.querySelector('button')
const status = box.querySelector('[role=status]')
const figures = document.getElementById('figures')
const words = figures
  ? ['Update the figures', 'The figures update themselves.', 'Stop updating']
  : ['Follow new decisions', 'New decisions appear at the top.', 'Stop following']
const body = () => document.querySelector('#events tbody')
let source
const shown = new Set()
box.hidden = false
function show({ data }) {
  const { id, decision, cells } = JSON.parse(data)
  if (shown.has(id)) return
  shown.add(id)
  if (shown.size > 5000) shown.delete(shown.values().next().value)
  const rows = body()
  if (!rows) return location.reload()
  const row = document.createElement('tr')
  const names = document.querySelectorAll('#events th')
  cells.forEach(([text, href], at) => {
    const inner = document.createElement(href ? 'a' : 'span')
    if (href) inner.href = href
    if (at === 1) inner.className = 'tag ' + decision
    inner.textContent = text
    const cell = row.appendChild(document.createElement('td'))
    cell.dataset.column = names[at].textContent
    cell.append(inner)
  })
  rows.prepend(row)
  while (rows.children.length > 200) rows.lastElementChild.remove()
}
function replace({ data }) {
  if (figures.contains(document.activeElement)) return
  const page = new DOMParser().parseFromString(JSON.parse(data), 'text/html')
  figures.replaceChildren(...page.body.childNodes)
}
function stop(text) {
  source.close()
  source = undefined
  button.textContent = words[0]
  status.textContent = text
}
function start() {
  source = new EventSource(box.dataset.stream)
  source.onopen = () => { status.textContent = words[1] }
  source.onmessage = figures ? replace : show
  source.addEventListener('skipped', () => {
    status.textContent = 'Some decisions are not shown: there were too many, or the browser was away for too long.'
  })
  source.onerror = () => { if (source.readyState === 2) stop('The gateway ended the connection.') }
  button.textContent = words[2]
}
button.addEventListener('click', () => source ? stop('Stopped.') : start())
if (figures) start()
`
