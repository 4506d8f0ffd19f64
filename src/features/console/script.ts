/**
 * The script of the live tail. It is the only one of the console, and the page of decisions works without it. It writes
 * text, and no HTML.
 */
export const SCRIPT = `'use strict'
const box = document.getElementById('live')
const button = box.querySelector('button')
const status = box.querySelector('[role=status]')
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
  cells.forEach(([text, href], at) => {
    const inner = document.createElement(href ? 'a' : 'span')
    if (href) inner.href = href
    if (at === 1) inner.className = 'tag ' + decision
    inner.textContent = text
    row.appendChild(document.createElement('td')).append(inner)
  })
  rows.prepend(row)
  while (rows.children.length > 200) rows.lastElementChild.remove()
}
function stop(text) {
  source.close()
  source = undefined
  button.textContent = 'Follow new decisions'
  status.textContent = text
}
button.addEventListener('click', () => {
  if (source) return stop('Stopped.')
  source = new EventSource(box.dataset.tail)
  source.onopen = () => { status.textContent = 'New decisions appear at the top.' }
  source.onmessage = show
  source.addEventListener('skipped', () => {
    status.textContent = 'Some decisions are not shown: there were too many, or the browser was away for too long.'
  })
  source.onerror = () => { if (source.readyState === 2) stop('The gateway ended the connection.') }
  button.textContent = 'Stop'
})
`
