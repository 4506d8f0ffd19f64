import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { httpUrl } from '../../src/validators/variables.ts'

const read = (value: unknown) => {
  const { data, error } = z.safeParse(httpUrl, value)
  return data ?? error?.issues.map(({ message }) => message).join()
}

test.each(['https://a.example', 'HTTP://a', 'https://[::1]:8443/x?y#z', 'https://a.example/b c'])(
  '%j is an http or https URL, and stays as it is',
  (text) => {
    expect(read(text)).toBe(text)
    expect(read(` ${text}\n`)).toBe(text)
  },
)

test.each([
  ...['', 'a.example', '//a.example', 'ftp://a', 'javascript:alert(1)', 'https:a', 'https:/a'],
  ...['https://', 'https://[::1', 'https://a:99999', 'https://a b', 'ht\ntps://a', 'https://a/\tb'],
  ...[1, null, undefined, ['https://a']],
])('%j is no http or https URL', (value) => {
  expect(read(value)).toBe('must be an http or https URL')
})

test.each(['https://u:p@a', 'https://u@a', 'https://:p@a'])('%s has credentials', (text) => {
  expect(read(text)).toBe('must not contain credentials')
})
