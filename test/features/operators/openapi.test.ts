import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
let document: any
beforeAll(async () => {
  gateway = await startGateway()
  document = (await gateway.send('/-/openapi.json')).body
})
afterAll(() => gateway.close())

interface Documented {
  readonly path: string
  readonly method: string
  // biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
  readonly operation: any
}
const operations = (): Documented[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as object).map(([method, operation]) => ({ path, method, operation })),
  )

/** Yields every `$ref` below a value. */
function* refsIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (name === '$ref') yield inner as string
    else yield* refsIn(inner)
  }
}

test('the document is public, cacheable, and revalidated by its ETag', async () => {
  const first = await gateway.send('/-/openapi.json')
  expect(first.status).toBe(200)
  expect(first.headers.get('content-type')).toMatch(/^application\/json/)
  expect(first.body.openapi).toBe('3.1.0')
  const etag = first.headers.get('etag') ?? ''
  const again = await gateway.send('/-/openapi.json', { headers: { 'If-None-Match': etag } })
  expect(again.status).toBe(304)
  expect(again.text).toBe('')
})

/** The script of a page, and the metadata of each path, which has the form of that of the gateway. */
const NOT_IN_THE_DOCUMENT = ['/-/docs.js', '/.well-known/oauth-protected-resource/*']

test('every call of the gateway is in the document, and nothing else is', async () => {
  const app = gateway.isolate()
  const routed = new Set(
    app.routes
      .filter(({ path }) => !NOT_IN_THE_DOCUMENT.includes(path))
      // A preflight request is the browser's, and no call.
      .filter(({ method }) => method !== 'ALL' && method !== 'OPTIONS')
      .filter(({ path }) => /^\/(-|oauth|\.well-known)\//.test(path))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
  )
  const named = operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  expect(named.sort()).toEqual([...routed].sort())
  const ids = operations().map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every reference resolves', () => {
  const refs = [...refsIn(document)]
  expect(refs.length).toBeGreaterThan(100)
  for (const ref of refs) {
    const parts = ref.slice(2).split('/')
    expect(
      parts.reduce((value, part) => value?.[part], document),
      ref,
    ).toBeDefined()
  }
})

test('every operator call lists its permission and refusals and has an example', () => {
  for (const { path, method, operation } of operations()) {
    if (!path.startsWith('/-/admin')) continue
    expect(operation.security).toEqual([{ operator: [] }])
    expect(operation.description).toMatch(/Requires the permission `portcullis:[a-z-]+:[a-z]+`/)
    for (const status of [400, 401, 403, 405, 413, 429, 500, 503])
      expect(Object.keys(operation.responses), `${method} ${path}`).toContain(String(status))
    if (operation.requestBody?.required) {
      const [content] = Object.values(operation.requestBody.content) as { example: object }[]
      expect(Object.keys(content?.example ?? {}).length).toBeGreaterThan(0)
    }
  }
})

test('the example bodies are valid bodies', async () => {
  for (const { path, method, operation } of operations()) {
    const example = operation.requestBody?.content['application/json']?.example
    if (example === undefined || path.includes('{')) continue
    const body = path.includes('/limits/') ? { ...example, limit: 'few' } : example
    const reply = await gateway.admin(method.toUpperCase(), path.slice('/-/admin'.length), body)
    // This gateway has no audit database, which it reports only for valid orders.
    const { code } = reply.body ?? {}
    if (path.startsWith('/-/admin/audit/')) expect(code, reply.text).toBe('dependency_unavailable')
    // The example of a leaked key is no key of this gateway.
    else if (path.endsWith('/api-key-lookups')) expect(code, reply.text).toBe('not_found')
    else expect(reply.status, `${path}: ${reply.text}`).toBeLessThan(300)
  }
})

test('without an authorization server the document has no OAuth paths', async () => {
  const silent = await startGateway({ signs: false })
  try {
    const { body } = await silent.send('/-/openapi.json')
    expect(Object.keys(body.paths)).toContain('/-/admin/bans')
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/oauth'))).toEqual([])
  } finally {
    await silent.close()
  }
})

describe('the page', () => {
  let page: string
  let headers: Headers
  beforeAll(async () => {
    ;({ text: page, headers } = await gateway.send('/-/docs'))
  })

  test('lists every call, with an example', () => {
    for (const { path, method, operation } of operations()) {
      expect(page).toContain(`<div class="inside" id="${operation.operationId}">`)
      expect(page).toContain(`<h3><code>${method.toUpperCase()} ${path}</code>`)
      expect(page).toContain(`&quot;$PORTCULLIS_URL${path}&quot;`)
      expect(page).toContain(`fetch(PORTCULLIS_URL + &#39;${path}&#39;`)
    }
    expect(page).not.toContain('undefined')
    expect(page).not.toContain('[object Object]')
  })

  test('runs only its own script, and loads nothing from another host [S60]', async () => {
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src https:\/\/[a-z.:\d]+\/-\/docs\.js 'sha256-[^']+'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'/,
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const [script = ''] = page.match(/<script [^>]*><\/script>/) ?? []
    expect(script).toMatch(/^<script src="\/-\/docs\.js" integrity="sha256-[^"]+" defer>/)
    expect(page.replace(script, '')).not.toMatch(/<script|\son\w+=|src=|@import|url\(|javascript:/i)
    const { status, text, headers: fields } = await gateway.send('/-/docs.js')
    expect([status, fields.get('content-type')]).toEqual([200, 'text/javascript; charset=UTF-8'])
    const digest = createHash('sha256').update(text).digest('base64')
    expect(script).toContain(`integrity="sha256-${digest}"`)
    expect(headers.get('content-security-policy')).toContain(`docs.js 'sha256-${digest}';`)
    expect(text).not.toMatch(/innerHTML|insertAdjacent|document\.write|eval|import/)
    for (const [, href = ''] of page.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^#\w+$/)
  })

  test('closes every element', () => {
    const open: string[] = []
    for (const [, end, name = ''] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
      if (['meta', 'br', 'input'].includes(name)) continue
      if (end === '') open.push(name)
      else expect(open.pop()).toBe(name)
    }
    expect(open).toEqual([])
  })
})
