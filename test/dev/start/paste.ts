import { expect } from 'vitest'
import type { Checkout } from './checkout.ts'

const ASSIGNMENT = /^TOKEN=\$\((.+)\)$/m

/**
 * Executes the suggested `curl` lines in `output` without curl, which may be missing on this machine, and
 * compares each status with the one that its comment expects. Returns these.
 */
export async function pasteAll(output: string, checkout: Checkout): Promise<readonly string[]> {
  const tokens = new Map<string, string>()
  async function tokenOf(command: string): Promise<string> {
    const known = tokens.get(command)
    if (known !== undefined) return known
    const { stdout } = await checkout.run(['sh', '-c', command]).ended
    tokens.set(command, stdout.trim())
    return stdout.trim()
  }
  const [, assigned = ''] = ASSIGNMENT.exec(output) ?? []
  const suggested = [...output.matchAll(/^# (\d+): .*\n(curl .*)$/gm)]
  for (const [, status, line = ''] of suggested) {
    const [whole = '$TOKEN', command = assigned] = /\$\((.+)\)/.exec(line) ?? []
    const complete = line.includes(whole) ? line.replace(whole, await tokenOf(command)) : line
    expect((await paste(complete)).status, line).toBe(Number(status))
  }
  return suggested.map(([, status = '']) => status)
}

function paste(line: string): Promise<Response> {
  const words = (line.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) =>
    word.replaceAll(/^['"]|['"]$/g, ''),
  )
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
