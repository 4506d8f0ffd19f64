/** The parts of curl that the README needs, for machines without curl. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    include: { type: 'boolean', short: 'i' },
    silent: { type: 'boolean', short: 's' },
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true },
    data: { type: 'string', short: 'd', multiple: true },
    user: { type: 'string', short: 'u' },
    output: { type: 'string', short: 'o' },
  },
})
const body = values.data?.join('&')
const headers = new Headers(values.header?.map((line) => line.split(/: (.*)/s).slice(0, 2)))
if (values.user !== undefined) headers.set('Authorization', `Basic ${btoa(values.user)}`)
if (body !== undefined && !headers.has('Content-Type')) {
  headers.set('Content-Type', 'application/x-www-form-urlencoded')
}
const response = await fetch(positionals[0], {
  method: values.request ?? (body === undefined ? 'GET' : 'POST'),
  headers,
  ...(body !== undefined && { body }),
})
const lines = []
if (values.include) {
  lines.push(`HTTP/1.1 ${response.status} ${response.statusText}`)
  for (const [name, value] of response.headers) lines.push(`${name}: ${value}`)
  lines.push('')
}
lines.push(await response.text())
const text = `${lines.join('\n')}\n`
if (values.output === undefined) process.stdout.write(text)
else writeFileSync(values.output, text)
