import { expect, test } from 'vitest'
import { mistakeOfLine } from '../../cli/tuple-mistake.ts'
import { tupleOfLine } from '../../cli/tuples.ts'

test.each([
  ['order:1', 'has no # after the object: object#relation@subject'],
  ['order:1@user:a', 'has no # after the object: object#relation@subject'],
  ['order:1#viewer', 'has no @ after the relation: object#relation@subject'],
  ['order:1#@user:a', 'has no relation: object#relation@subject'],
  ['order:1#viewer@', 'has no subject: object#relation@subject'],
  ['  order:1#viewer@user:a b', 'contains white space, which must be %20 in ids'],
  ['order:1#viewer@user:\ufffd', 'is not UTF-8'],
  ['{"object":', 'begins with { but is not JSON'],
  ['{"object":"a:1","relation":"r"}', 'has no subject'],
  ['{"relation":"r","user":"u:1"}', 'has no object'],
  ['{"object":"a:1","relation":"r","subject":1}', 'has a subject that is not a string'],
  ['{"object":"a:1","relation":"r","subject":"u:1","user":"u:1"}', 'has both subject and user'],
  ['{"object":"a:1","object":"a:1","relation":"r","user":"u:1"}', 'has a duplicate member'],
  [
    '{"object":"a:1","relation":"r","user":"u:1","condition":{}}',
    'has a member "condition", which is unknown',
  ],
])('the mistake of the line %j: it %s', (line, mistake) => {
  expect(tupleOfLine(line)).toBeUndefined()
  expect(mistakeOfLine(line)).toBe(mistake)
})
