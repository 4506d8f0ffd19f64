/** Parses and writes event streams (HTML, server-sent events). */

/** One event, or a comment (`event` is undefined, and no field is present). */
export interface ServerSentEvent {
  readonly type: string | undefined
  /** Undefined: the event has no data field. */
  readonly data: string | undefined
  readonly id: string | undefined
  /** Milliseconds, as digits. */
  readonly retry: string | undefined
}

/** An event is larger than the reader may hold. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge'
}

const LINE_END = /\r\n|\r|\n/
const BYTE_ORDER_MARK = '\ufeff'

/**
 * Creates a reader of events. `read` returns the events and comments that end in `text`, the next
 * part of the stream. As in browsers, CR, LF and CRLF end a line. Throws {@link EventTooLarge} as
 * soon as one event has more than `maxChars` characters.
 */
export function createEventReader(maxChars: number) {
  let rest = ''
  let isBegin = true
  /** The last character was a CR: an LF after it belongs to it. */
  let isAfterCr = false
  let fields: Partial<Record<'type' | 'data' | 'id' | 'retry', string>> = {}
  let held = 0

  function parseLine(line: string): ServerSentEvent | undefined {
    if (line === '') {
      const { type, data, id, retry } = fields
      const isEmpty = Object.keys(fields).length === 0
      fields = {}
      held = 0
      return isEmpty ? undefined : { type, data, id, retry }
    }
    const colon = line.indexOf(':')
    if (colon === 0) return COMMENT
    held += line.length
    if (held > maxChars) throw new EventTooLarge()
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (name === 'data')
      fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`
    else if (name === 'event') fields.type = value
    else if (name === 'id' && !value.includes('\0')) fields.id = value
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) fields.retry = value
    return undefined
  }

  return function read(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = []
    if (text === '') return events
    let unread = rest + text
    if (isBegin && unread.startsWith(BYTE_ORDER_MARK)) unread = unread.slice(1)
    if (isAfterCr && unread.startsWith('\n')) unread = unread.slice(1)
    isBegin = false
    isAfterCr = text.endsWith('\r')
    for (;;) {
      const end = LINE_END.exec(unread)
      if (end === null) break
      const event = parseLine(unread.slice(0, end.index))
      if (event !== undefined) events.push(event)
      unread = unread.slice(end.index + end[0].length)
    }
    if (held + unread.length > maxChars) throw new EventTooLarge()
    rest = unread
    return events
  }
}

const COMMENT: ServerSentEvent = {
  type: undefined,
  data: undefined,
  id: undefined,
  retry: undefined,
}

/** Writes an event so that every reader sees the same fields. Values must be of `createEventReader`. */
export function eventText({ type, data, id, retry }: ServerSentEvent): string {
  const lines = [
    ...(type === undefined ? [] : [`event: ${type}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(retry === undefined ? [] : [`retry: ${retry}`]),
    ...(data === undefined ? [] : data.split('\n').map((line) => `data: ${line}`)),
  ]
  return lines.length === 0 ? ':\n\n' : `${lines.join('\n')}\n\n`
}
