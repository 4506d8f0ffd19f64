/**
 * Types of the frameworks that the origins use, as far as the origins need them. Some frameworks
 * have no types of their own.
 */

declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  export interface Request extends IncomingMessage {
    body: unknown
    params: Readonly<Record<string, string>>
    caller?: { readonly subject: string } | null
    valid?: Readonly<Record<string, unknown>>
  }
  export interface Response extends ServerResponse {
    status(code: number): this
    json(value: unknown): this
  }
  type Next = (error?: unknown) => void
  export type Handler = (req: Request, res: Response, next: Next) => unknown
  export type ErrorHandler = (error: Error, req: Request, res: Response, next: Next) => unknown
  export interface Router extends RequestListener {
    get(path: string, ...handlers: Handler[]): void
    post(path: string, ...handlers: Handler[]): void
    use(handler: Handler): void
    use(handler: ErrorHandler): void
    use(path: string, ...handlers: (Handler | Router)[]): void
  }
  export interface Application extends Router {
    set(name: string, value: unknown): void
    listen(port: number, host: string, done: () => void): unknown
  }
  const express: {
    (): Application
    Router(options?: { readonly mergeParams?: boolean }): Router
    json(options?: { readonly limit?: number }): Handler
  }
  export default express
}

declare module 'express4' {
  export { default } from 'express'
}

declare module 'koa' {
  import type { RequestListener } from 'node:http'

  export default class Koa {
    use(middleware: unknown): this
    callback(): RequestListener
  }
}

declare module '@koa/router' {
  export class Router {
    get(path: string, handler: (context: { body: unknown }) => void): this
    routes(): unknown
  }
}

declare module 'fastify' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Options {
    readonly routerOptions?: {
      readonly caseSensitive: boolean
      readonly ignoreTrailingSlash: boolean
    }
  }
  export interface Request {
    readonly raw: IncomingMessage & {
      readonly caller?: { readonly subject: string } | null
      readonly valid?: Readonly<Record<string, unknown>>
    }
    readonly params: unknown
    readonly body: unknown
  }
  export interface Reply {
    readonly raw: ServerResponse
    code(status: number): Reply
    send(value: unknown): Reply
  }
  type Hook = (request: Request, reply: Reply, done: () => void) => void
  type Handler = (request: Request, reply: Reply) => unknown
  export interface Server {
    get(path: string, handler: Handler): void
    get(path: string, options: { readonly preHandler: Hook }, handler: Handler): void
    post(path: string, options: { readonly preHandler: Hook }, handler: Handler): void
    register(plugin: unknown): Promise<void>
    /** Of `@fastify/middie`. */
    use(middleware: unknown): void
    listen(options: { readonly port: number; readonly host: string }): Promise<string>
    close(): Promise<void>
  }
  export default function fastify(options?: Options): Server
}

declare module '@hapi/hapi' {
  interface Options {
    readonly port: number
    readonly host: string
    readonly router: { readonly isCaseSensitive: boolean; readonly stripTrailingSlash: boolean }
  }
  interface Route {
    readonly method: string
    readonly path: string
    handler(): string
  }
  export function server(options: Options): {
    readonly info: { readonly uri: string; readonly port: number | string }
    route(route: Route): void
    start(): Promise<void>
    stop(): Promise<void>
  }
}
