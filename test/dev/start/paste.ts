import { expect } from 'vitest'

/** Executes a suggested `curl` line without curl, which may be missing on this machine. */
export function paste(line: string): Promise<Response> {
  const words = line.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? []
  const headers = new Headers()
  let body: string | undefined
  let url = ''
  expect(words.splice(0, 2)).toEqual(['curl', '-i'])
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-H') {
      const [name = '', value = ''] = (words.shift() ?? '').split(': ')
      headers.set(name, value)
    } else if (word === '-d') {
      body = words.shift()
    } else {
      url = word
    }
  }
  return fetch(url, { headers, ...(body !== undefined && { method: 'POST', body }) })
}
