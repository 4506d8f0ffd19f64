/**
 * Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document): the client id is the
 * URL of a document that describes the client.
 */

import { BodyRefused, boundedText } from '../../../http/bounded-text.ts'
import { parseStrictJson } from '../../../http/strict-json.ts'
import { createLruMap } from '../../../isolate/lru-map.ts'
import { isWithin } from '../../../isolate/period.ts'
import type { DocumentCheck } from '../../../problems/checks.ts'
import type { Client } from '../../authorization-server/client.ts'
import { readClientMetadata } from './client-metadata.ts'
import { type DocumentHosts, isLoopbackHost, parseDocumentUrl } from './document-url.ts'
import { publicClient } from './public-client.ts'

export interface ClientDocumentsOptions {
  readonly hosts: DocumentHosts
  /** Private-use schemes of redirect URIs that the policy permits. */
  readonly schemes: readonly string[]
  /** The gateway's public URL. */
  readonly publicUrl: string
  /** Calls public addresses only. */
  readonly fetch: typeof fetch
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The client of a document, or why there is none. */
export type Described = { readonly client: Client } | { readonly fault: DocumentCheck }

const MAX_BYTES = 10_240
const TIMEOUT_MS = 3_000
const MAX_DOCUMENTS = 500
const DEFAULT_SECONDS = 300
/** However long the document says: a client may withdraw a redirect URI. */
const MAX_SECONDS = 3_600
/** Protects the server of the document from browsers that repeat a request. */
const FAILED_SECONDS = 30
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i

/**
 * Creates the documents of an isolate. A document is fetched by GET without credentials. Redirects
 * are not followed, and only status 200, JSON of at most 10 KiB within 3 seconds, and a `client_id`
 * equal to the URL are accepted. It is cached for 5 minutes, or as its `max-age` says, at most an hour.
 */
export function createClientDocuments(options: ClientDocumentsOptions) {
  const { hosts, publicUrl, now } = options
  const documents = createLruMap<string, { described: Described; seconds: number; readMs: number }>(
    {
      max: MAX_DOCUMENTS,
    },
  )

  return {
    /** Returns a described client that is cached. Does not call its server. */
    recall(id: string): Described | undefined {
      if (parseDocumentUrl(id, hosts) === undefined) return { fault: 'url' }
      const known = documents.get(id)
      return known !== undefined && isWithin(known.readMs, known.seconds * 1000, now())
        ? known.described
        : undefined
    },

    /** Fetches a document, unless it is cached. Never throws. */
    async read(id: string): Promise<Described> {
      const known = this.recall(id)
      if (known !== undefined) return known
      const read = await readDocument(id, options)
      documents.set(id, { ...read, readMs: now() })
      return read.described
    },

    /**
     * Returns what the URL alone says about a client: its id. For requests of clients with a code or
     * a refresh token, which contain everything else. Undefined: the policy refuses its host.
     */
    identified(id: string): Client | undefined {
      if (parseDocumentUrl(id, hosts) === undefined) return undefined
      const grants = ['authorization_code', 'refresh_token'] as const
      return publicClient({ id, name: id, grants, redirectUris: [] }, publicUrl)
    },
  }
}

export type ClientDocuments = ReturnType<typeof createClientDocuments>

async function readDocument(
  id: string,
  { fetch: fetchPublic, schemes, publicUrl }: ClientDocumentsOptions,
): Promise<{ described: Described; seconds: number }> {
  const failed = (fault: DocumentCheck) => ({ described: { fault }, seconds: FAILED_SECONDS })
  // `parseDocumentUrl` accepts this machine only for development.
  const call = isLoopbackHost(new URL(id)) ? fetch : fetchPublic
  let text: string
  let seconds = DEFAULT_SECONDS
  try {
    const response = await call(id, {
      headers: { accept: 'application/json' },
      redirect: 'manual',
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const { status, headers, body } = response
    const fault =
      status !== 200
        ? status >= 300 && status < 400
          ? 'redirect'
          : 'status'
        : JSON_TYPE.test(headers.get('content-type') ?? '')
          ? undefined
          : 'content_type'
    if (fault !== undefined) {
      await body?.cancel()
      return failed(fault)
    }
    text = await boundedText(body, MAX_BYTES)
    seconds = boundLife(headers.get('cache-control'))
  } catch (error) {
    return failed(error instanceof BodyRefused ? 'length' : 'unreachable')
  }
  let json: unknown
  try {
    json = parseStrictJson(text)
  } catch {
    return failed('json')
  }
  const metadata = readClientMetadata(json, schemes)
  if (typeof metadata === 'string') return failed(metadata)
  if (metadata.statedId !== id) return failed('client_id')
  // A document is public, so it cannot contain a secret; keys are not supported.
  if ((metadata.authentication ?? 'none') !== 'none') return failed('authentication')
  const name = metadata.name === '' ? new URL(id).hostname : metadata.name
  return { described: { client: publicClient({ ...metadata, id, name }, publicUrl) }, seconds }
}

function boundLife(cacheControl: string | null): number {
  const [, given] = /(?:^|[\s,])max-age="?(\d{1,10})\b/i.exec(cacheControl ?? '') ?? []
  if (given === undefined) return DEFAULT_SECONDS
  return Math.min(MAX_SECONDS, Math.max(FAILED_SECONDS, Number(given)))
}
