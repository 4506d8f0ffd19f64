/** Guards every route of a Fastify app. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ConnectHandler, GuardedRequest } from 'portcullis/express'

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly guard?: ConnectHandler
  }
}

declare module 'node:http' {
  interface IncomingMessage extends Partial<GuardedRequest> {}
}

/**
 * Runs the guard in `config` of each route that is registered later, also in plugins. A route without one gets
 * `standard`. Call it before you register routes or plugins.
 */
export function guardRoutes(app: FastifyInstance, standard: ConnectHandler): void {
  app.addHook(
    'preHandler',
    (
      { raw, params, body, ip, protocol, routeOptions }: FastifyRequest,
      reply: FastifyReply,
      done,
    ) => {
      const handler = routeOptions.config.guard ?? standard
      handler(Object.assign(raw, { params, body, ip, protocol }), reply.raw, done)
    },
  )
}
