/** The sessions of a user as JSON, and the description of these calls. */
import * as z from 'zod/mini'
import type { Operation } from '../../../routes/operation.ts'
import { describe } from '../../../validators/checks.ts'
import { SESSION_PATH, SESSIONS_PATH } from '../return-path.ts'
import { SESSION_COOKIE } from '../session.ts'
import type { ActiveSession } from '../sessions.ts'
import { describeBrowser } from './browser-name.ts'

const viewSchema = () =>
  z.strictObject({
    sessions: z.array(
      z.strictObject({
        id: z.string(),
        createdAt: z.string().check(describe('the time of the login, RFC 3339')),
        activeAt: z
          .string()
          .check(
            describe('the last activity, RFC 3339; up to an eighth of the idle time too early'),
          ),
        city: z.nullable(z.string()).check(describe('near the login, where the platform says it')),
        country: z.nullable(z.string()).check(describe('ISO 3166-1, where the platform says it')),
        browser: z.string().check(describe('such as `Firefox on Windows`; proves nothing')),
        userAgent: z.nullable(z.string()).check(describe('of the browser at the login')),
        current: z.boolean().check(describe('the session of this request')),
      }),
    ),
  })

/** `current` is the id of the session that the request has. */
export function sessionsView(
  sessions: readonly ActiveSession[],
  current: string | undefined,
): z.output<ReturnType<typeof viewSchema>> {
  return {
    sessions: sessions.map(
      ({ id, createdAtSeconds, activeAtSeconds, userAgent = null, ...place }) => ({
        id,
        createdAt: new Date(createdAtSeconds * 1000).toISOString(),
        activeAt: new Date(activeAtSeconds * 1000).toISOString(),
        city: place.city ?? null,
        country: place.country ?? null,
        browser: describeBrowser(userAgent ?? undefined),
        userAgent,
        current: id === current,
      }),
    ),
  }
}

const COMMON = {
  tag: 'Sign-in',
  security: 'session',
  scheme: {
    session: {
      type: 'apiKey',
      in: 'cookie',
      name: SESSION_COOKIE,
      description: 'The browser session of a signed-in user.',
    },
  },
} as const

/** Returns the calls of a signed-in user. */
export const signInOperations = (): readonly Operation[] => [
  {
    ...COMMON,
    method: 'GET',
    path: SESSIONS_PATH,
    id: 'listOwnSessions',
    summary: 'List the sessions of the user',
    description: 'With `Accept: application/json`; otherwise the response is a page.',
    responses: { 200: { description: 'The sessions.', schema: viewSchema } },
    problems: [400, 401, 403, 405, 429, 500, 503],
  },
  {
    ...COMMON,
    method: 'DELETE',
    path: SESSION_PATH,
    id: 'endOwnSession',
    summary: 'End a session of the user',
    description:
      'Ends the session at all gateways with its next request. A page of the gateway’s origin must send the call.',
    params: z.strictObject({ id: z.string() }),
    responses: { 204: { description: 'The session has ended.' } },
    problems: [400, 401, 403, 404, 405, 413, 429, 500, 503],
  },
]
