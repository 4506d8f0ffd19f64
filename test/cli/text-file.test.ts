import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readVariables } from '../../cli/text-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'text-file-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function read(text: string) {
  const file = join(folder, 'a.env')
  writeFileSync(file, text)
  return readVariables(file)
}

describe('a file with values', () => {
  test.each([
    ['a # comment behind a space', 'A=pass #word\nB=1', { A: 'pass', B: '1' }],
    ['a comment in place of a value', 'A= #word', { A: '' }],
    [
      'a # in quotes',
      `A='pa#ss'\nB="pa#ss" # comment\nC=\`#\``,
      { A: 'pa#ss', B: 'pa#ss', C: '#' },
    ],
    ['a # in quotes over two lines', 'A="pa\nB=ss#x"\r\nC=1\r\n', { A: 'pa\nB=ss#x', C: '1' }],
    ['comments with assignments', '# A=b#c\n# D="e\nB=1', { B: '1' }],
    ['a byte order mark, and export', '\ufeffexport A=b\nB = "c"  ', { A: 'b', B: 'c' }],
  ])('keeps each value: %s', (_, text, values) => {
    expect(read(text)).toEqual(values)
  })

  test.each([
    ['A=1\nREDIS_URL=redis://:pa#ss@host', 'REDIS_URL: the value has a #'],
    ['KEY=#ss', 'KEY: the value has a #'],
    ['export KEY = pa#ss', 'KEY: the value has a #'],
    ['KEY="pa#ss', 'KEY: the value has a #'],
    ['KEY=pa"s#s"', 'KEY: the value has a #'],
    [`KEY='pa's'#s'`, 'KEY: text follows the closing quote'],
    ['KEY="pa"ss', 'KEY: text follows the closing quote'],
    ['KEY="pa\nss"ss', 'KEY: text follows the closing quote'],
  ])('refuses a value whose end would be dropped, and does not show it: %j', (text, message) => {
    expect(() => read(text)).toThrow(message)
    expect(() => read(text)).not.toThrow(/ss/)
  })
})
