/** Runs whole sessions: login, calls, refresh, logout, and attempts after that. */
import { addressOf } from '../chaos/callers.ts'
import { type Issuer, signToken } from '../chaos/issuers.ts'
import { membersOf } from '../load/client.ts'
import { ACCESS_TOKEN, EXCHANGE, type TokenClient } from '../stack/credentials.ts'
import { formOf, own } from './operator.ts'
import type { Outcome, Sender } from './sender.ts'
import { badShot, goodShot } from './sender.ts'

/** Addresses of sessions, separate from other addresses. */
const FIRST_ADDRESS = 0x4000_0000

export type Sessions = ReturnType<typeof createSessions>

export function createSessions(sender: Sender, app: TokenClient, issuer: Issuer) {
  let count = 0

  function tokenRequest(kind: string, fields: Record<string, string>, dueMs?: number) {
    return sender.send(
      { expectation: own(kind, [200]), outgoing: formOf('/oauth/token', app, fields) },
      dueMs === undefined ? {} : { dueMs },
    )
  }

  return {
    /** Runs one session. Ends early if a dependency fails; it does not retry. */
    async live(dueMs: number): Promise<void> {
      const subject = `session-${count}`
      const address = addressOf(FIRST_ADDRESS + count++)
      const login = await tokenRequest(
        'login',
        {
          grant_type: EXCHANGE,
          subject_token: await signToken(issuer, { sub: subject }),
          subject_token_type: ACCESS_TOKEN,
        },
        dueMs,
      )
      const first = tokensOf(login)
      if (first === undefined) return
      const call = (credential: string) =>
        sender.send(goodShot('session call', { credential, address }, { path: '/orders', subject }))
      await call(first.access)
      const refreshed = await tokenRequest('refresh', {
        grant_type: 'refresh_token',
        refresh_token: first.refresh,
      })
      const second = tokensOf(refreshed)
      if (second === undefined) return
      await call(second.access)
      const logout = await sender.send({
        expectation: own('logout', [200]),
        outgoing: formOf('/oauth/revoke', app, { token: second.refresh }),
      })
      if (logout.status !== 200) return
      for (const credential of [first.access, second.access])
        await sender.send(badShot('call after logout', [401], { credential, address }))
      await sender.send({
        expectation: { ...own('refresh after logout', [400]), mayReachOrigin: 'no' },
        outgoing: formOf('/oauth/token', app, {
          grant_type: 'refresh_token',
          refresh_token: second.refresh,
        }),
      })
    },
  }
}

function tokensOf(
  answer: Outcome,
): { readonly access: string; readonly refresh: string } | undefined {
  const { access_token: access, refresh_token: refresh } = membersOf(answer.body)
  return typeof access === 'string' && typeof refresh === 'string' ? { access, refresh } : undefined
}
