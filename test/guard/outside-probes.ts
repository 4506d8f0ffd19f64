/** Requests from outside to the guarded apps of `examples/frameworks`, and the right results. */
import type { TokenOptions } from '../harness/issuer.ts'

/** Returns the headers of a caller with these roles, and with claims that replace those of a valid token. */
export type Bearer = (
  roles?: readonly string[],
  options?: TokenOptions,
) => Promise<{ Authorization: string }>

export interface OutsideProbe {
  readonly name: string
  readonly method?: string
  readonly path?: string
  readonly headers?: (bearer: Bearer) => Promise<Readonly<Record<string, string>>>
  readonly body?: string
  readonly status: number
  /** Of the problem document. */
  readonly code: string
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** No handler is reached. */
export const REFUSED_OUTSIDE: readonly OutsideProbe[] = [
  { name: 'no token', status: 401, code: 'missing_token' },
  { name: 'no token, by HEAD', method: 'HEAD', status: 401, code: '' },
  { name: 'no token, with a query', path: '/notes?limit=1', status: 401, code: 'missing_token' },
  {
    name: 'no token on a route without a permission',
    path: '/mine',
    status: 401,
    code: 'missing_token',
  },
  {
    name: 'no token, with a body',
    method: 'POST',
    headers: async () => JSON_TYPE,
    body: '{"text":"a"}',
    status: 401,
    code: 'missing_token',
  },
  {
    name: 'a token that is no token',
    headers: async () => ({ Authorization: 'Bearer a.b.c' }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token that is no token, on a public route',
    path: '/about',
    headers: async () => ({ Authorization: 'Bearer a.b.c' }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'an expired token',
    headers: (bearer) => bearer(['reader'], { claims: { exp: 1_000 } }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token for another audience',
    headers: (bearer) => bearer(['reader'], { claims: { aud: 'https://other.test' } }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a token of another issuer',
    headers: (bearer) => bearer(['reader'], { claims: { iss: 'https://other.test' } }),
    status: 401,
    code: 'invalid_token',
  },
  {
    name: 'a caller without the permission',
    method: 'POST',
    headers: async (bearer) => ({ ...JSON_TYPE, ...(await bearer(['reader'])) }),
    body: '{"text":"a"}',
    status: 403,
    code: 'insufficient_permission',
  },
  {
    name: 'a body that does not match',
    method: 'POST',
    headers: async (bearer) => ({ ...JSON_TYPE, ...(await bearer(['writer'])) }),
    body: '{"text":""}',
    status: 422,
    code: 'invalid_input',
  },
  {
    name: 'a body with a name that the schema does not have',
    method: 'POST',
    headers: async (bearer) => ({ ...JSON_TYPE, ...(await bearer(['writer'])) }),
    body: '{"text":"a","owner":"bob"}',
    status: 422,
    code: 'invalid_input',
  },
  {
    name: 'a query that does not match',
    path: '/notes?limit=101',
    headers: (bearer) => bearer(),
    status: 422,
    code: 'invalid_input',
  },
  {
    name: 'a path parameter that does not match',
    path: '/notes/one',
    headers: (bearer) => bearer(),
    status: 422,
    code: 'invalid_input',
  },
]

/** Targets that a router may take for `/notes`. Without a token, none of them reaches a handler. */
export const SPELLINGS = [
  '/notes/',
  '//notes',
  '/NOTES',
  '/notes//',
  '/%6eotes',
  '/notes%2f',
  '/notes%2F0',
  '/notes/%30',
  '/./notes',
  '/about/../notes',
  '/about/%2e%2e/notes',
  '/about/..%2fnotes',
  '/notes;a=b',
  '/notes%00',
  '/notes.json',
  '/notes?limit=1#a',
  '\\notes',
  '/\\notes',
  'http://127.0.0.1/notes',
  '/notes/0/',
  '/notes?_method=GET',
] as const

/** Fields by which bypasses of comparable guards were reported. */
export const BYPASS_FIELDS: readonly (readonly [string, string])[] = [
  ['x-middleware-subrequest', 'middleware:middleware:middleware:middleware:middleware'],
  ['x-middleware-subrequest', 'src/middleware'],
  ['x-middleware-rewrite', '/about'],
  ['x-middleware-override-headers', 'authorization'],
  ['x-nextjs-data', '1'],
  ['x-matched-path', '/about'],
  ['x-invoke-path', '/about'],
  ['x-now-route-matches', '1=about'],
  ['rsc', '1'],
  ['next-router-prefetch', '1'],
  ['x-prerender-revalidate', 'a'],
  ['x-sveltekit-load', 'true'],
  ['x-original-url', '/about'],
  ['x-rewrite-url', '/about'],
  ['x-forwarded-uri', '/about'],
  ['x-http-method-override', 'GET'],
  ['x-forwarded-for', '127.0.0.1'],
]
