/**
 * Notices: what an action has done, on the page that follows. A notice is in Redis, is shown once, and only to the
 * session of the action. The browser has its name, which no link can set and no one can guess.
 */
import { base64url } from 'jose'
import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { randomBytes } from '../../crypto/random.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisConnection } from '../../redis/connection.ts'
import { consoleKeys } from '../../redis/keys.ts'
import { recordIn, sendCommand } from '../../redis/reply.ts'
import { CONSOLE_PATH, type Notice } from './layout.ts'

/** The browser sends it only with requests of the console, and never to an origin. */
const COOKIE = '__Secure-portcullis-notice'
const LIFE_SECONDS = 60
const NAME_BYTES = 16
const NAMED = /(?:^|;) *__Secure-portcullis-notice=([\w-]{22})(?:;|$)/
/** The owner, and the sentences. */
const storedNotice = z.tuple([z.array(z.string()), z.array(z.string())])

/** The value of `Set-Cookie` that removes the name of a notice. */
export const forgetNotice = cookieOf('', 0)

function cookieOf(name: string, seconds: number): string {
  return `${COOKIE}=${name}; Path=${CONSOLE_PATH}; Secure; HttpOnly; SameSite=Strict; Max-Age=${seconds}`
}

/** The token id of a browser is the id of its session. `session` is the `sid` of the provider, which many do not send. */
const ownerOf = ({ issuer, subject, tokenId = '' }: Principal): readonly string[] => [
  issuer,
  subject,
  tokenId,
]

export function createNotices(redis: RedisConnection) {
  const { notice: prefix } = consoleKeys(redis.keys)
  return {
    /** Stores a notice. Returns the value of `Set-Cookie`. Undefined: Redis did not store it. */
    async put(visitor: Principal, notice: Notice): Promise<string | undefined> {
      const name = base64url.encode(randomBytes(NAME_BYTES))
      const text = JSON.stringify([ownerOf(visitor), notice])
      try {
        await sendCommand(redis, ['SET', prefix + name, text, 'EX', LIFE_SECONDS])
      } catch (error) {
        // The action is done: its answer must not be that of a failure.
        if (error instanceof Unavailable) return undefined
        throw error
      }
      return cookieOf(name, LIFE_SECONDS)
    },

    /** Removes and returns the notice that the browser names. Undefined: there is none for this session. */
    async take(visitor: Principal, cookies: string | undefined = ''): Promise<Notice | undefined> {
      const name = NAMED.exec(cookies)?.[1]
      if (name === undefined) return undefined
      try {
        const stored = await sendCommand(redis, ['GETDEL', prefix + name])
        if (stored === null) return undefined
        const [owner, notice] = recordIn(stored, storedNotice)
        return JSON.stringify(owner) === JSON.stringify(ownerOf(visitor)) ? notice : undefined
      } catch (error) {
        if (error instanceof Unavailable) return undefined
        throw error
      }
    },
  }
}
