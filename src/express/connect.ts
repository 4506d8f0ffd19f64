/** Requests and responses of Connect, Express and Node, as far as the guard needs them. */

export interface ConnectRequest {
  readonly method?: string | undefined
  /** Rewritten by routers. */
  url?: string | undefined
  /** As it was sent. */
  readonly originalUrl?: string
  /** What a body parser has read. */
  body?: unknown
  /** Of the route, in Express. */
  readonly params?: unknown
  /** The client's address, by the setting `trust proxy`. */
  readonly ip?: string | undefined
  /** By the setting `trust proxy`. */
  readonly protocol?: string
  readonly rawHeaders?: readonly string[]
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: unknown
}

export interface ConnectResponse {
  statusCode: number
  readonly headersSent: boolean
  setHeader(name: string, value: string): unknown
  end(body?: string): unknown
}

export type Next = (error?: unknown) => void

/** A handler of Connect, and so of Express, of Nest on Express, and of middlewares in Fastify. */
export type ConnectHandler = (req: ConnectRequest, res: ConnectResponse, next: Next) => void

/** What Node has, and the public types above leave out: an app may have a type of its own for each of them. */
export interface NodeRequest extends ConnectRequest {
  /** Set by `express.json()` of Express 4: other parsers then skip the body. */
  _body?: boolean
  readonly complete?: boolean
  readonly httpVersionMajor?: number
  /** Of HTTP/2. */
  readonly stream?: { readonly endAfterHeaders?: boolean }
  readonly readableDidRead?: boolean
  /** Bytes that have arrived, and were not read. */
  readonly readableLength?: number
  readonly baseUrl?: string
  readonly route?: { readonly path?: unknown }
  readonly app?: unknown
  readonly socket?: {
    readonly remoteAddress?: string
    readonly encrypted?: boolean
  }
  read?(size?: number): unknown
  push?(chunk: Uint8Array | string | null, encoding?: string): boolean
  destroy?(): unknown
  [Symbol.asyncIterator]?(): AsyncIterator<Uint8Array | string>
}

export interface NodeResponse extends ConnectResponse {
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  readonly destroyed: boolean
  readonly closed: boolean
  getHeader(name: string): unknown
  writeHead(...args: readonly unknown[]): unknown
  destroy(): unknown
  once(event: 'close' | 'finish', listener: () => void): unknown
}
