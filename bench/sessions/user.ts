/** The steps of a user: logs in, calls, logs out, and sends the revoked token. */
import { addressOf } from '../chaos/callers.ts'
import type { Answer, Client } from '../load/client.ts'
import { ORDERS_PATH } from '../load/questions.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import { ACCESS_TOKEN, EXCHANGE } from '../stack/credentials.ts'
import type { Cast, Step } from './protocol.ts'

const APPLICATION_ADDRESS = '2001:db8:1::1'

/** `failed`: no capacity, or no response. */
export type Verdict = 'right' | 'failed' | { readonly wrong: string }

export interface User {
  readonly number: number
  /** Token of the identity provider. */
  readonly subjectToken: string
  access?: string
  refresh?: string
}

export interface Steps {
  /** Performs a step. `round` counts the calls of this user, from 1. */
  take(step: Step, user: User, round: number): Promise<Verdict>
}

/**
 * Creates the steps. A user's calls go to one gateway after another. The logout goes to the first
 * one; then the revoked token goes to the second one, which has cached it from a call.
 */
export function createSteps(
  client: Client,
  urls: readonly string[],
  { id, secret }: Cast['client'],
): Steps {
  const urlFor = (user: User, turn: number) => urls[(user.number + turn) % urls.length] as string
  const authorization = `Basic ${btoa(`${id}:${secret}`)}`

  function post(url: string, fields: Record<string, string>): Promise<Answer> {
    return client.send({
      url,
      method: 'POST',
      headers: {
        authorization,
        'content-type': 'application/x-www-form-urlencoded',
        'cf-connecting-ip': APPLICATION_ADDRESS,
      },
      body: new URLSearchParams(fields).toString(),
    })
  }

  function call(user: User, turn: number): Promise<Answer> {
    return client.send({
      url: urlFor(user, turn) + ORDERS_PATH,
      method: 'GET',
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${user.access}`,
        'cf-connecting-ip': addressOf(user.number),
      },
    })
  }

  const takes: Readonly<Record<Step, (user: User, round: number) => Promise<Verdict>>> = {
    async login(user) {
      const answer = await post(`${urlFor(user, 0)}/oauth/token`, {
        grant_type: EXCHANGE,
        subject_token: user.subjectToken,
        subject_token_type: ACCESS_TOKEN,
      })
      return verdictOf(answer, 200, () => {
        const { access_token: access, refresh_token: refresh } = JSON.parse(answer.body)
        if (typeof access !== 'string' || typeof refresh !== 'string') return false
        Object.assign(user, { access, refresh })
        return true
      })
    },
    async verify(user, round) {
      const answer = await call(user, round)
      return verdictOf(answer, 200, () => answer.body === ORIGIN_BODY)
    },
    async logout(user) {
      const token = user.refresh ?? ''
      // If the logout fails, the state of the session is unknown.
      delete user.refresh
      return verdictOf(await post(`${urlFor(user, 0)}/oauth/revoke`, { token }), 200)
    },
    async again(user) {
      return verdictOf(await call(user, 1), 401)
    },
  }
  return { take: (step, user, round) => takes[step](user, round) }
}

function verdictOf(
  { status, code, body, isCut }: Answer,
  right: number,
  isRight = () => true,
): Verdict {
  if (status === 0 || status === 503 || isCut) return 'failed'
  if (status !== right) return { wrong: `${status} ${code}`.trim() }
  return isRight() ? 'right' : { wrong: `${status} with a body of ${body.length} characters` }
}
