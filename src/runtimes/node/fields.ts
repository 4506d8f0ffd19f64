/** The fields of a message as plain data, with the methods of `Headers`. */

const SET_COOKIE = 'set-cookie'

/**
 * Header fields of Node, where creating a `Headers` costs more than a stage of the pipeline. Names
 * are in lower case. Several fields of one name are joined to a list, except `Set-Cookie` (RFC 9110
 * section 5.3). Does NOT check names and values: Node does when it reads and writes them.
 */
export class Fields implements Omit<Headers, 'getAll'> {
  /** All fields but `Set-Cookie`. */
  readonly fields: Map<string, string>
  #cookies: string[] = []

  constructor(fields = new Map<string, string>()) {
    this.fields = fields
  }

  get(name: string): string | null {
    const key = name.toLowerCase()
    if (key === SET_COOKIE) return this.#cookies.length === 0 ? null : this.#cookies.join(', ')
    return this.fields.get(key) ?? null
  }

  has(name: string): boolean {
    const key = name.toLowerCase()
    return key === SET_COOKIE ? this.#cookies.length > 0 : this.fields.has(key)
  }

  set(name: string, value: string): void {
    const key = name.toLowerCase()
    if (key === SET_COOKIE) this.#cookies = [value]
    else this.fields.set(key, value)
  }

  append(name: string, value: string): void {
    const key = name.toLowerCase()
    if (key === SET_COOKIE) {
      this.#cookies.push(value)
      return
    }
    const before = this.fields.get(key)
    this.fields.set(key, before === undefined ? value : before + separatorOf(key) + value)
  }

  delete(name: string): void {
    const key = name.toLowerCase()
    if (key === SET_COOKIE) this.#cookies = []
    else this.fields.delete(key)
  }

  getSetCookie(): string[] {
    return [...this.#cookies]
  }

  forEach<This = void>(
    callback: (this: This, value: string, name: string, parent: Headers) => void,
    thisArg?: This,
  ): void {
    for (const [name, value] of this)
      callback.call(thisArg as This, value, name, this as unknown as Headers)
  }

  *keys(): IterableIterator<string> {
    for (const [name] of this) yield name
  }

  *values(): IterableIterator<string> {
    for (const [, value] of this) yield value
  }

  *entries(): IterableIterator<[string, string]> {
    yield* this.fields
    for (const cookie of this.#cookies) yield [SET_COOKIE, cookie]
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.#cookies.length === 0 ? this.fields.entries() : this.entries()
  }

  /** Returns names and values in turn, as `writeHead` of Node reads them. */
  flat(): string[] {
    const flat: string[] = []
    for (const [name, value] of this.fields) flat.push(name, value)
    for (const cookie of this.#cookies) flat.push(SET_COOKIE, cookie)
    return flat
  }
}

Object.setPrototypeOf(Fields.prototype, Headers.prototype)

/** Returns the fields of a request as Node has read them. */
export function receivedFields(raw: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase()
    const value = raw[at + 1] as string
    const before = fields.get(name)
    fields.set(name, before === undefined ? value : before + separatorOf(name) + value)
  }
  return fields
}

/** Returns the fields of a response as undici has parsed them: names in lower case, and bytes as Latin-1. */
export function fieldsOf(
  parsed: Readonly<Record<string, string | readonly string[] | undefined>>,
): Fields {
  const fields = new Fields()
  for (const name of Object.keys(parsed)) {
    const value = parsed[name]
    if (typeof value === 'string') fields.set(name, value)
    else for (const each of value ?? []) fields.append(name, each)
  }
  return fields
}

/** Several `Cookie` fields are one list with semicolons (RFC 9113 section 8.2.3). */
const separatorOf = (name: string): string => (name === 'cookie' ? '; ' : ', ')
