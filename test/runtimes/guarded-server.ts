/** Serves an app on Bun or Deno, and prints its port. */

interface Runtimes {
  readonly Bun?: {
    serve(options: object): { readonly port: number }
  }
  readonly Deno?: {
    serve(
      options: object,
      handle: (request: Request, info: { readonly remoteAddr: unknown }) => unknown,
    ): { readonly addr: { readonly port: number } }
  }
}

export interface App {
  fetch(request: Request, passed?: object): Response | Promise<Response>
}

export function serveApp(app: App): void {
  const { Bun, Deno } = globalThis as Runtimes
  const place = { hostname: '127.0.0.1', port: 0 }
  const port =
    Bun?.serve({
      ...place,
      fetch: (request: Request, server: object) => app.fetch(request, server),
    }).port ??
    Deno?.serve({ ...place, onListen() {} }, (request, { remoteAddr }) =>
      app.fetch(request, { remoteAddr }),
    ).addr.port
  console.log(`port ${port}`)
}
