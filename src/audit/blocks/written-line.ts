/**
 * Reads the text of an event as gateways write it, without parsing it as JSON: the line of the event consists of parts
 * of its text. What has another form is left to the schema, so nothing here depends on who wrote the text.
 */
import type { CountedEvent } from '../event.ts'
import { newSalt } from '../personal.ts'
import { SEPARATOR } from './line.ts'

/** An event of which the line is known. */
export interface LinedEvent extends CountedEvent {
  readonly line: string
}

/** Characters of a text that JSON does not escape. A surrogate could be alone, so events with one are parsed. */
const CHARACTER = '[^"\\\\\\x00-\\x1f\\ud800-\\udfff]'
const CHARACTERS = `${CHARACTER}*`
const TEXT = `"${CHARACTERS}"`
const ESCAPED_TEXT = `"(?:${CHARACTER}|\\\\["\\\\])*"`
/** A group with the text, which does not match for null. */
const TEXT_OR_NULL = `(?:null|"(${CHARACTERS})")`
const COUNT = '(?:0|[1-9]\\d{0,14})'
const NUMBER = `${COUNT}(?:\\.\\d{0,16}[1-9])?`
const STATUS = '[1-9]\\d\\d'
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
/** Days that exist. An event of a February 29th is parsed, because its year decides. */
const DAY =
  '(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)'
const TIME = `\\d{4}-${DAY}T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{3}Z`

const listOf = (entry: string) => `(?:${entry}(?:,${entry})*)?`
const optional = (member: string) => `(?:,${member})?`

const LIMIT = `\\{"name":${TEXT},"limit":${COUNT},"remaining":${COUNT}${optional('"unavailable":true')}\\}`
const ACTOR =
  `\\{"issuer":${TEXT_OR_NULL},"subject":${TEXT_OR_NULL},"client":${TEXT_OR_NULL},"tenant":${TEXT_OR_NULL},` +
  `"tokenIdHash":${TEXT_OR_NULL}${optional(`"key":"(${CHARACTERS})"`)}\\}`
const GRANTS =
  `\\{"roles":\\[${listOf(TEXT)}\\],"scopes":\\[${listOf(TEXT)}\\]` +
  `${optional(`"plan":${TEXT}`)}${optional(`"relation":${TEXT}`)}\\}`

/** The members in their order. Groups are the values that searches and counts read, and the parts of the line. */
const EVENT = new RegExp(
  `^\\{("id":"(${UUID})","time":"(${TIME})"),` +
    `("requestId":"(${CHARACTERS})","traceId":${TEXT},"actor":${ACTOR}),` +
    `("method":"(${CHARACTERS})","route":${TEXT_OR_NULL},"decision":"(allow|deny|error)",` +
    `"reason":"(${CHARACTERS})","status":(${STATUS}),"limits":\\[${listOf(LIMIT)}\\],` +
    `"durationsMs":(\\{${listOf(`${TEXT}:${NUMBER}`)}\\})),` +
    `("address":"(${CHARACTERS})"),` +
    `("colo":(?:null|${TEXT})${optional(`"host":"(${CHARACTERS})"`)}${optional(`"origin":"(${CHARACTERS})"`)}` +
    `${optional(`"observed":(\\[${TEXT}(?:,${TEXT})*\\])`)}` +
    `${optional(`"rejected":\\{"seen":${ESCAPED_TEXT},"expected":${ESCAPED_TEXT},"verified":(?:true|false)\\}`)}` +
    `${optional(`"call":(\\{"method":${TEXT}${optional(`"name":${TEXT}`)}\\})`)})` +
    `(${optional(`"grants":${GRANTS}`)}${optional(`"fields":(\\{${listOf(`${TEXT}:${TEXT}`)}\\})`)})\\}$`,
)

/** No event of a gateway is longer, except those with an operator's change. A pattern needs memory for each character. */
const MAX_CHARACTERS = 8_192

/**
 * Returns the event with its line, and with what searches and counts read of it. Returns undefined for a text that has
 * another form than gateways write, and for events with an operator's change or a number of lost events.
 */
export function writtenLine(text: string): LinedEvent | undefined {
  const found = text.length > MAX_CHARACTERS ? null : EVENT.exec(text)
  if (found === null) return undefined
  const [, first, id = '', time = ''] = found
  const [durations = '', fields] = [found[18], found[27]]
  const durationsMs = JSON.parse(durations)
  if (repeatsMember(durations, durationsMs, 2)) return undefined
  if (fields !== undefined && repeatsMember(fields, JSON.parse(fields), 4)) return undefined
  const actor: CountedEvent['actor'] = {
    issuer: found[6] ?? null,
    subject: found[7] ?? null,
    client: found[8] ?? null,
    tenant: found[9] ?? null,
    tokenIdHash: found[10] ?? null,
  }
  if (found[11] !== undefined) actor.key = found[11]
  const event: LinedEvent = {
    line:
      `{${first},${found[12]},${found[21]}}${SEPARATOR}${newSalt()}${SEPARATOR}` +
      `{${found[4]},${found[19]}${found[26]}}`,
    id,
    time,
    requestId: found[5] ?? '',
    actor,
    method: found[13] ?? '',
    route: found[14] ?? null,
    decision: found[15] as CountedEvent['decision'],
    reason: found[16] ?? '',
    status: Number(found[17]),
    durationsMs,
    address: found[20] ?? '',
  }
  if (found[22] !== undefined) event.host = found[22]
  if (found[23] !== undefined) event.origin = found[23]
  if (found[24] !== undefined) event.observed = JSON.parse(found[24])
  if (found[25] !== undefined) event.call = JSON.parse(found[25])
  return event
}

/** Reports whether an object has fewer members than its JSON, which has `quotes` quotes for each and no escape. */
function repeatsMember(json: string, object: object, quotes: number): boolean {
  let found = 0
  for (let at = json.indexOf('"'); at !== -1; at = json.indexOf('"', at + 1)) found += 1
  return Object.keys(object).length * quotes < found
}
