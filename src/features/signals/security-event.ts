/** Security event tokens (RFC 8417, with the profile of SSF 1.0 section 4): verification and claims. */
import * as z from 'zod/mini'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import { Denied } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { tokenId } from '../../validators/claims.ts'
import { mediaType } from '../../validators/issuer.ts'
import { absentIfNull } from '../../validators/schema-parts.ts'
import { signalRefused } from './refused.ts'
import type { Transmitter } from './transmitter.ts'

/** The media type of a token, and without `application/` its `typ`. */
export const SECURITY_EVENT_TYPE = 'secevent+jwt'
/** A token describes one event (SSF 1.0 section 4.1.3); RFC 8417 allows several aspects of it. */
const MAX_EVENTS = 16

export interface SecurityEvent {
  readonly transmitter: Transmitter
  /** `jti`. */
  readonly id: string
  readonly issuedAtSeconds: number
  readonly events: readonly SignalledEvent[]
}

export interface SignalledEvent {
  /** Its URI. */
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  /** A subject identifier (RFC 9493) that is not checked yet. */
  readonly subject: unknown
  /** When it happened, as far as the transmitter says so. */
  readonly atSeconds: number
}

const time = z.number().check(z.minimum(0))

const claims = z.looseObject({
  aud: z.union([z.string(), z.array(z.string())]),
  iat: time,
  jti: tokenId,
  // A token that expires may be another kind of token (SSF 1.0 section 4.1.7).
  exp: absentIfNull(z.never()),
  toe: absentIfNull(time),
  events: z.record(z.string(), z.looseObject({})),
})

/**
 * Verifies a token. Throws `Denied` (`signal_refused`), which names the check, and `Unavailable` if the
 * keys of the transmitter cannot be read. `isAllowed` comes before the signature, which costs more.
 */
export async function verifySecurityEvent(
  text: string,
  transmitters: readonly Transmitter[],
  isAllowed: (transmitter: Transmitter) => Promise<void>,
  nowSeconds: number,
  waitUntil?: WaitUntil,
): Promise<SecurityEvent> {
  try {
    const header = readHeader(text)
    const payload = readPayload(text)
    const iss = readOwnMember(payload, 'iss')
    const transmitter = transmitters.find(({ issuer }) => issuer === iss)
    if (transmitter === undefined) throw signalRefused('iss')
    await isAllowed(transmitter)
    if (!transmitter.algorithms.includes(header.alg)) throw signalRefused('alg')
    await verifySignature(text, await transmitter.keySet.find(header, waitUntil))
    if (header.typ === undefined || mediaType(header.typ) !== SECURITY_EVENT_TYPE)
      throw signalRefused('typ')
    return readClaims(payload, transmitter, nowSeconds)
  } catch (error) {
    if (error instanceof Denied && error.denial.code === 'token_rejected')
      throw signalRefused(error.denial.check, { cause: error })
    throw error
  }
}

function readClaims(
  payload: Readonly<Record<string, unknown>>,
  transmitter: Transmitter,
  nowSeconds: number,
): SecurityEvent {
  const { audiences, maxAgeSeconds, clockTolerance } = transmitter
  const parsed = z.safeParse(claims, payload)
  if (!parsed.success) throw signalRefused(String(parsed.error.issues[0]?.path[0] ?? 'claims'))
  const { aud, iat, jti, toe, events } = parsed.data
  if (![aud].flat().some((one) => audiences.includes(one))) throw signalRefused('aud')
  const isDated =
    iat <= nowSeconds + clockTolerance && iat >= nowSeconds - maxAgeSeconds - clockTolerance
  if (!isDated) throw signalRefused('iat')
  const entries = Object.entries(events)
  if (entries.length === 0 || entries.length > MAX_EVENTS) throw signalRefused('events')
  const subject = readOwnMember(payload, 'sub_id')
  return {
    transmitter,
    id: jti,
    issuedAtSeconds: iat,
    events: entries.map(([type, about]) => ({
      type,
      payload: about,
      // Transmitters of earlier drafts have the subject in the event.
      subject: subject ?? readOwnMember(about, 'subject'),
      atSeconds: timeOf(
        readOwnMember(about, 'event_timestamp'),
        toe ?? iat,
        nowSeconds + clockTolerance,
      ),
    })),
  }
}

/** Some transmitters send milliseconds, which are in the future as seconds. */
const timeOf = (stated: unknown, otherwise: number, latest: number): number =>
  typeof stated === 'number' && stated > 0 && stated <= latest
    ? stated
    : Math.min(otherwise, latest)
