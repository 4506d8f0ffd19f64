/** What the README needs of curl, for machines that have none: `-i`, `-X`, `-H` and `-d`. */
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    include: { type: 'boolean', short: 'i' },
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true },
    data: { type: 'string', short: 'd' },
  },
})
const body = values.data
const response = await fetch(positionals[0], {
  method: values.request ?? (body === undefined ? 'GET' : 'POST'),
  headers: (values.header ?? []).map((line) => line.split(/: (.*)/s).slice(0, 2)),
  ...(body !== undefined && { body }),
})
if (values.include) {
  console.log(`HTTP/1.1 ${response.status} ${response.statusText}`)
  for (const [name, value] of response.headers) console.log(`${name}: ${value}`)
  console.log('')
}
console.log(await response.text())
