import { expect, test } from 'vitest'
import { mistakeOfLine } from '../../cli/tuple-mistake.ts'
import { tupleOfLine } from '../../cli/tuples.ts'

test.each([
  ['order:1', 'has no # behind its object: object#relation@subject'],
  ['order:1@user:a', 'has no # behind its object: object#relation@subject'],
  ['order:1#viewer', 'has no @ behind its relation: object#relation@subject'],
  ['order:1#@user:a', 'has no relation: object#relation@subject'],
  ['order:1#viewer@', 'has no subject: object#relation@subject'],
  ['  order:1#viewer@user:a b', 'has white space in it, which ids write as %20'],
  ['order:1#viewer@user:\ufffd', 'is not UTF-8'],
  ['{"object":', 'begins with { and is not JSON'],
  ['{"object":"a:1","relation":"r"}', 'has no subject'],
  ['{"relation":"r","user":"u:1"}', 'has no object'],
  ['{"object":"a:1","relation":"r","subject":1}', 'has a subject that is no text'],
  ['{"object":"a:1","relation":"r","subject":"u:1","user":"u:1"}', 'has both subject and user'],
  ['{"object":"a:1","object":"a:1","relation":"r","user":"u:1"}', 'has a member twice'],
  [
    '{"object":"a:1","relation":"r","user":"u:1","condition":{}}',
    'has a member "condition", which would be lost',
  ],
])('what is wrong with %j is said: it %s', (line, mistake) => {
  expect(tupleOfLine(line)).toBeUndefined()
  expect(mistakeOfLine(line)).toBe(mistake)
})
