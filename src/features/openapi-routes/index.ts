/**
 * What the modules of `portcullis openapi import` use: `import { override } from
 * 'portcullis/openapi-routes'`.
 */
export {
  base64,
  date,
  dateTime,
  email,
  hostname,
  ipv4,
  ipv6,
  time,
  uri,
  uriReference,
  uuid,
} from './formats.ts'
export {
  dependentKeys,
  hasKeys,
  type MemberRules,
  maxMembers,
  members,
  minMembers,
} from './members.ts'
export { override, type RouteChange } from './override.ts'
export {
  booleanText,
  jsonText,
  type ListRules,
  listText,
  numberText,
  partText,
  repeated,
  single,
} from './text.ts'
export {
  allOf,
  anyValueOf,
  integer,
  type JsonType,
  json,
  maxChars,
  minChars,
  not,
  oneOf,
  otherThan,
  uniqueItems,
} from './values.ts'
