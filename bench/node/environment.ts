/** What the processes of this folder read from their environment. */
import { HOST } from '../../dev/start/settings.ts'

export const PORT = Number(process.env.PORT)
export const { ORIGIN_URL = '', REDIS_URL = '', JWKS = '', ISSUER = '' } = process.env
export const LIMIT = Number(process.env.LIMIT)
/** The stream of the events of the opponent by hand. */
export const STREAM = 'by-hand:events'
export { HOST }

/** Headers that belong to one connection (RFC 9110 section 7.6.1), and the name of the server. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
