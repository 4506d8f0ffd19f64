/** The description of the gateway's own calls, as OpenAPI and as a page. */
import type { Hono } from 'hono'
import { documentResponse } from '../../http/entity-tag.ts'
import { createApp } from '../../http/router.ts'
import type { Operation } from '../../routes/operation.ts'
import { type DocumentOptions, type OpenApiDocument, openApiDocument } from './document.ts'
import { oauthOperations, publicOperations } from './own-operations.ts'
import { createDocsPage, type DocsPage } from './page.ts'
import { SCRIPT } from './page-assets.ts'
import { VERSION } from './version.ts'

export interface OpenApiOptions extends Omit<DocumentOptions, 'version'> {
  /** Whether there is an authorization server. */
  readonly issuesTokens: boolean
  /** Calls in addition to those that the gateway always has. */
  readonly operations: readonly Operation[]
}

/**
 * Creates `GET /openapi.json`, `GET /docs` and its script. They are public: they describe the software, not its
 * data. An isolate builds them at the first request and then serves them from memory.
 */
export function openApiRoutes({
  publicUrl,
  sources,
  problems,
  issuesTokens,
  operations,
}: OpenApiOptions): Hono {
  let document: OpenApiDocument | undefined
  let page: DocsPage | undefined

  function described(): OpenApiDocument {
    document ??= openApiDocument(
      [
        ...(issuesTokens ? oauthOperations() : []),
        ...operations,
        ...publicOperations(issuesTokens),
      ],
      { publicUrl, version: VERSION, sources, problems },
    )
    return document
  }

  return createApp()
    .get('/openapi.json', (c) => documentResponse(c, JSON.stringify(described())))
    .get('/docs', async (c) => {
      page ??= await createDocsPage(described(), publicUrl)
      return documentResponse(c, page.html, 'text/html; charset=UTF-8', page.headers)
    })
    .get('/docs.js', (c) => documentResponse(c, SCRIPT, 'text/javascript; charset=UTF-8'))
}
