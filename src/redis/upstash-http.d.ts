/**
 * The HTTP client of `@upstash/redis`, and its errors. The entries of the package have only the class `Redis` around
 * this client, with 250 commands that no bundler can leave out, see decision 0134.
 */
export { errors } from '@upstash/redis/cloudflare'

interface HttpClientOptions {
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  /** `false`: the server does not encode replies as base64. */
  readonly responseEncoding: false
  readonly retry: { readonly retries: number; readonly backoff: (retry: number) => number }
}

interface HttpRequest {
  readonly path: readonly string[]
  readonly body: unknown
  /** With a signal in place of a function, an abort resolves to null, which reads as "no value". */
  readonly signal: () => AbortSignal
}

export declare class HttpClient {
  constructor(options: HttpClientOptions)
  upstashSyncToken: string
  request(request: HttpRequest): Promise<unknown>
}
