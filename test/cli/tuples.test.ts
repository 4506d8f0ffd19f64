import { describe, expect, test } from 'vitest'
import { tupleOfLine } from '../../cli/tuples.ts'

const TUPLE = { object: 'team:1', relation: 'member', subject: 'user:a' }
const JSON_LINE = JSON.stringify(TUPLE)

describe('an ambiguous line is not a tuple:', () => {
  test.each([
    ['bytes that are not UTF-8', new TextDecoder().decode(Uint8Array.of(0xff, 0xfe))],
    ['the replacement character', '\ufffd'],
  ])('with %s', (_, odd) => {
    expect(tupleOfLine(`team:1#member@user:${odd}`)).toBeUndefined()
    expect(tupleOfLine(JSON_LINE.replace('user:a', `user:${odd}`))).toBeUndefined()
  })

  test.each(['object', 'relation', 'subject', '\\u006fbject'])('with %s twice', (name) => {
    expect(tupleOfLine(JSON_LINE.replace('{', `{"${name}":"team:2",`))).toBeUndefined()
    expect(tupleOfLine(JSON_LINE.replace('}', `,"${name}":"team:2"}`))).toBeUndefined()
  })

  test('but quotes, backslashes and other scripts are unambiguous', () => {
    for (const id of ['"', '\\', '\\"', 'é', '日本', '😀']) {
      const subject = `user:${id}`
      expect(tupleOfLine(JSON.stringify({ ...TUPLE, subject }))).toEqual({ ...TUPLE, subject })
      expect(tupleOfLine(`team:1#member@${subject}`)).toEqual({ ...TUPLE, subject })
    }
    expect(tupleOfLine(JSON_LINE.replace('subject', 'user'))).toEqual(TUPLE)
  })
})
