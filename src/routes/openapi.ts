/** The description of the gateway's own calls, for programs and for people. */
import { Hono } from 'hono'
import { etag } from 'hono/etag'
import { docsHeaders, docsPage } from './docs.ts'
import { type OpenApiDocument, openApiDocument } from './openapi/document.ts'
import { oauthOperations } from './openapi/oauth-operations.ts'
import { publicOperations } from './openapi/public-operations.ts'
import type { Operation } from './operation.ts'

export interface OpenApiOptions {
  readonly publicUrl: string
  /** Whether there is an authorization server. */
  readonly issuesTokens: boolean
  /** Calls besides those that the gateway always has. */
  readonly operations: readonly Operation[]
}

/** Of the described interface. */
const VERSION = '1.0.0'
const MAX_AGE_SECONDS = 300
const HEADERS = {
  'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
  'X-Content-Type-Options': 'nosniff',
}

/**
 * `GET /openapi.json` and `GET /docs`, open to anyone: they tell what this software can do, nothing
 * of what is in it. Made at the first request of an isolate, then served from memory.
 */
export function openApiRoutes({ publicUrl, issuesTokens, operations }: OpenApiOptions): Hono {
  let document: OpenApiDocument | undefined
  let page: string | undefined

  function described(): OpenApiDocument {
    document ??= openApiDocument(
      [
        ...(issuesTokens ? oauthOperations() : []),
        ...operations,
        ...publicOperations({ issuesTokens }),
      ],
      { publicUrl, version: VERSION },
    )
    return document
  }

  return new Hono()
    .get('/openapi.json', etag(), (c) => c.json(described(), 200, HEADERS))
    .get('/docs', etag(), (c) => {
      page ??= docsPage(described())
      return c.html(page, 200, { ...HEADERS, ...docsHeaders })
    })
}
