/** The definition of the decision endpoint, and its variables. */
import * as z from 'zod/mini'
import { type FeatureVariables, requires } from '../../validators/environment.ts'
import { listeningPort } from '../../validators/variables.ts'

/** How a proxy describes the request of its client. */
export const PROXIES = {
  /** `X-Forwarded-Method`, `-Proto`, `-Host` and `-Uri`. */
  traefik: 'forwarded',
  caddy: 'forwarded',
  /** `X-Original-Method` and `X-Original-URL`. */
  nginx: 'original',
  haproxy: 'original',
  /** The method, the host and, below `/-/decide`, the path of the authorization request itself. */
  envoy: 'path',
} as const

export type ProxyName = keyof typeof PROXIES
export type Form = (typeof PROXIES)[ProxyName]

export const forwardAuthSchema = z.strictObject({
  proxy: z.optional(z.enum(Object.keys(PROXIES) as [ProxyName, ...ProxyName[]])),
  withoutBody: z.optional(z.array(z.string())),
})

export const DEFAULT_PORT = 8_788
export const DEFAULT_HOST = '127.0.0.1'

export const forwardAuthVariables = {
  shape: {
    FORWARD_AUTH_PORT: z.optional(listeningPort()),
    FORWARD_AUTH_HOST: z.optional(
      z
        .string()
        .check(
          z.regex(/^[\w.:%-]+$/, 'must be an address such as 127.0.0.1, or the name of a host'),
        ),
    ),
  },
  checks: [
    requires(
      'TRUSTED_PROXIES',
      'forwardAuth() answers only the proxies that it lists',
      ({ TRUSTED_PROXIES }) => TRUSTED_PROXIES !== undefined,
    ),
  ],
} satisfies FeatureVariables
