/**
 * Types of the frameworks that the origins use, as far as the origins need them. Some frameworks
 * have no types of their own.
 */

declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  type Handler = (request: IncomingMessage, response: ServerResponse) => void
  export default function express(): RequestListener & {
    get(path: string, handler: Handler): void
  }
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
  interface Options {
    readonly routerOptions: {
      readonly caseSensitive: boolean
      readonly ignoreTrailingSlash: boolean
    }
  }
  export default function fastify(options: Options): {
    get(path: string, handler: () => string): void
    listen(options: { readonly port: number; readonly host: string }): Promise<string>
    close(): Promise<void>
  }
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
