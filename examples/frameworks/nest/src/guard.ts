/** The guard of a Nest app: see docs/guards.md. */
import type { CanActivate, ExecutionContext } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { RequestHandler } from 'express'
import { portcullis } from 'portcullis/express'
import { redis } from 'portcullis/redis'

const { ISSUER, REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

export const guard = portcullis({
  issuers: [{ issuer: ISSUER, audience: 'https://notes.example.com' }],
  redis: redis(REDIS_URL),
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
})

/** Declares what a route, or each route of a controller, needs. */
export const Route = Reflector.createDecorator<RequestHandler>()

const reflector = new Reflector()
const authenticated = guard.authenticated()

/** Runs the declared guard once Nest has found the route. A route without a declaration needs a valid token. */
export const routeGuard: CanActivate = {
  canActivate(context: ExecutionContext) {
    const declared = reflector.getAllAndOverride(Route, [context.getHandler(), context.getClass()])
    const http = context.switchToHttp()
    const response = http.getResponse()
    return new Promise<boolean>((resolve, reject) => {
      // After a refusal, which the guard answers itself.
      response.once('close', () => resolve(false))
      const next = (error?: unknown) => (error === undefined ? resolve(true) : reject(error))
      const handler = declared ?? authenticated
      handler(http.getRequest(), response, next)
    })
  },
}
