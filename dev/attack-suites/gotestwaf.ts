/** Builds the requests of gotestwaf's test cases from their files. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import * as z from 'zod/mini'
import type { Case } from './case.ts'

const placeholderSchema = z.union([z.string(), z.record(z.string(), z.looseObject({}))])
const fileSchema = z.object({
  payload: z.array(z.string()),
  encoder: z.array(z.string()),
  placeholder: z.array(placeholderSchema),
  type: z._default(z.string(), 'harmless texts'),
})
const rawSchema = z.object({
  method: z.string(),
  path: z._default(z.string(), '/'),
  headers: z._default(z.record(z.string(), z.string()), {}),
  body: z._default(z.string(), ''),
})
const graphqlSchema = z.object({ method: z.string() })

const FORM = 'application/x-www-form-urlencoded'
const BOUNDARY = 'd74496d66958873e'
/** The tool draws names at random. Here they are fixed, so that two runs send the same. */
const NAME = 'a1b2c3d4e5'
/** What Go's `url.PathEscape` keeps and `encodeURIComponent` does not. */
const KEPT = /%(?:24|26|2B|3D|3A|40)/g

const ENCODERS: Readonly<Record<string, (text: string) => string>> = {
  Plain: (text) => text,
  URL: pathEscaped,
  Base64Flat: (text) => Buffer.from(text).toString('base64').replaceAll('=', ''),
  Base64: (text) => Buffer.from(text).toString('base64'),
  JSUnicode: jsUnicode,
  XMLEntity: xmlEntity,
}

function pathEscaped(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(KEPT, decodeURIComponent)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

function jsUnicode(text: string): string {
  return [...Array(text.length).keys()]
    .map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('')
}

function xmlEntity(text: string): string {
  const escaped = text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
  return `<string>${escaped}</string>`
}

type Request = Pick<Case, 'method' | 'target' | 'headers' | 'body'>

const get = (target: string, headers: Request['headers'] = {}): Request => {
  return { method: 'GET', target, headers }
}
const post = (type: string | undefined, body: string): Request => {
  const headers = type === undefined ? {} : { 'Content-Type': type }
  return { method: 'POST', target: '', headers, body }
}

/** The requests that place a payload. The types of the bodies are those that the tool sends. */
const PLACEHOLDERS: Readonly<Record<string, (text: string) => Request>> = {
  URLParam: (text) => get(`/?${NAME}=${text}`),
  URLPath: (text) => get(`/${text}`),
  Header: (text) => get('', { [`X-${NAME}`]: text }),
  UserAgent: (text) => get('', { 'User-Agent': text }),
  HTMLForm: (text) => post(FORM, `${NAME}=${text}`),
  HTMLMultipartForm: (text) =>
    post(
      `multipart/form-data; boundary=${BOUNDARY}`,
      [
        `--${BOUNDARY}`,
        `Content-Disposition: form-data; name="${NAME}"`,
        '',
        text,
        `--${BOUNDARY}--`,
        '',
      ].join('\r\n'),
    ),
  JSONBody: (text) => post('application/json', text),
  JSONRequest: (text) =>
    post('application/json', `{"test": true, "${NAME}": "${jsUnicode(text)}"}`),
  XMLBody: (text) => post('application/xml', text),
  SOAPBody: (text) =>
    post('text/xml', `<Envelope><Body><ab${NAME}>${xmlEntity(text)}</ab${NAME}></Body></Envelope>`),
  RequestBody: (text) => post(undefined, text),
}

function placed(placeholder: z.infer<typeof placeholderSchema>, text: string): Request | undefined {
  if (typeof placeholder === 'string') return PLACEHOLDERS[placeholder]?.(text)
  if (placeholder.RawRequest !== undefined) {
    const { method, path, headers, body } = rawSchema.parse(placeholder.RawRequest)
    const filled = body.replaceAll('{{payload}}', text)
    return {
      method,
      target: path.replaceAll('{{payload}}', pathEscaped(text)),
      headers,
      // The files have line feeds, and a client sends what it is given.
      ...(filled !== '' && { body: filled }),
    }
  }
  if (placeholder.GraphQL === undefined) return undefined
  const { method } = graphqlSchema.parse(placeholder.GraphQL)
  if (method === 'GET') return get(`/?${new URLSearchParams({ query: text })}`)
  return post(undefined, text)
}

const nameOf = (placeholder: z.infer<typeof placeholderSchema>) =>
  typeof placeholder === 'string' ? placeholder : Object.keys(placeholder).join()

/** Returns the requests of the folder `testcases`. Leaves out gRPC, which needs a server of its own. */
export function gotestwafCases(folder: string): Case[] {
  const root = join(folder, 'testcases')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.yml'))
    .sort()
    .flatMap((file) => casesOf(join(root, file), !file.startsWith('false-pos')))
}

function casesOf(path: string, isAttack: boolean): Case[] {
  // Go's parser accepts this escape, which is not in YAML's specification.
  const text = readFileSync(path, 'utf8').replaceAll(`"\\'`, `"'`)
  const { payload, encoder, placeholder, type } = fileSchema.parse(load(text))
  return payload.flatMap((attack) =>
    encoder.flatMap((encoding) =>
      placeholder.flatMap((place) => {
        const encoded = ENCODERS[encoding]?.(attack)
        const request = encoded === undefined ? undefined : placed(place, encoded)
        if (request === undefined) return []
        const name = `${encoding} ${nameOf(place)} ${attack.slice(-120)}`
        return [{ group: type, isAttack, name, ...request }]
      }),
    ),
  )
}
