/** Sends requests and revocations, and records each of them. Detects an overloaded machine. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { NUMBER_HEADER } from '../chaos/dependencies.ts'
import { type RefreshEvent, STARVED } from '../chaos/history.ts'
import { createClient, membersOf } from '../load/client.ts'
import type { System } from './system.ts'
import { EVERYBODY, type RouteName } from './terms.ts'

const TTL_SECONDS = 7_200
/** Exempt from throttling by address, which is not recorded here. */
const ADDRESS = '127.0.0.1'

/** Maximum number of concurrent requests to one process. */
const MAX_UNDER_WAY = 80

/** A repeated request would be two requests with one number. */
const ONCE = { timeoutMs: 8_000, repeats: false }

export interface Token {
  /** The `jti` of the token. */
  readonly id: string
  readonly subject: string
  readonly jwt: string
}

export type Recorder = Awaited<ReturnType<typeof createRecorder>>

export async function createRecorder({ gateways, app, events, sign, now }: System) {
  const client = createClient(ONCE)
  const underWay = new Set<Promise<unknown>>()
  const operator = await sign({ subject: 'olga', roles: ['operator'], ttlSeconds: TTL_SECONDS })
  const underWayAt = gateways.map(() => 0)
  let sent = 0

  function track<Result>(work: Promise<Result>): Promise<Result> {
    underWay.add(work)
    void work.finally(() => underWay.delete(work))
    return work
  }

  async function request(process: number, route: RouteName, token: Token): Promise<void> {
    sent += 1
    underWayAt[process] = (underWayAt[process] ?? 0) + 1
    const [id, invokeMs] = [sent, now()]
    const { status, code, isCut } = await client.send({
      method: 'GET',
      url: `${gateways[process]?.url()}/${route}`,
      headers: {
        authorization: `Bearer ${token.jwt}`,
        'cf-connecting-ip': ADDRESS,
        [NUMBER_HEADER]: String(id),
      },
    })
    events.push({
      kind: 'request',
      id,
      process,
      route,
      subject: token.subject,
      token: token.id,
      invokeMs,
      completeMs: now(),
      status: isCut ? 0 : status,
      code: isCut ? '' : code,
    })
    underWayAt[process] = (underWayAt[process] ?? 0) - 1
  }

  async function revoke(process: number, token: Token, kind: 'token' | 'subject') {
    const invokeMs = now()
    const { status, isCut } = await client.send({
      method: 'POST',
      url: `${gateways[process]?.url()}/-/admin/revocations`,
      headers: {
        authorization: `Bearer ${operator}`,
        'cf-connecting-ip': ADDRESS,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ kind, value: kind === 'token' ? token.id : token.subject }),
    })
    const completeMs = now()
    const complete = isCut ? 0 : status
    events.push({
      kind: 'revoke',
      process,
      token: token.id,
      invokeMs,
      completeMs,
      status: complete,
    })
    return complete === 201
  }

  /** Sends a form of a client that logs in, uses a refresh token, or revokes it. Returns the tokens of the response. */
  async function refresh(
    process: number,
    about: Pick<RefreshEvent, 'family' | 'purpose' | 'token'>,
    fields: Readonly<Record<string, string>>,
  ) {
    const invokeMs = now()
    const { status, code, isCut, body } = await client.send({
      method: 'POST',
      url: `${gateways[process]?.url()}/oauth/${about.purpose === 'end' ? 'revoke' : 'token'}`,
      headers: {
        authorization: `Basic ${btoa(`${app.id}:${app.secret}`)}`,
        'cf-connecting-ip': ADDRESS,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(fields).toString(),
    })
    const { access_token, refresh_token } = membersOf(isCut ? '' : body)
    const [access, successor] = [access_token, refresh_token].map((text) =>
      typeof text === 'string' ? text : undefined,
    )
    const event: RefreshEvent = {
      ...{ kind: 'refresh', process, ...about, invokeMs, completeMs: now() },
      ...{ token: endOf(about.token), successor: endOf(successor ?? '') },
      ...(isCut ? { status: 0, code: '' } : { status, code }),
    }
    events.push(event)
    return { status: event.status, event, access, successor }
  }

  return {
    async mint(subject: string): Promise<Token> {
      const id = randomUUID()
      const jwt = await sign({ subject, tokenId: id, roles: ['reader'], ttlSeconds: TTL_SECONDS })
      return { id, subject, jwt }
    },
    /** Sends a request. Resolves with its response. */
    request: (...args: Parameters<typeof request>) => track(request(...args)),
    /** Revokes the token or its subject at a process. Returns true for a 201. */
    revoke: (...args: Parameters<typeof revoke>) => track(revoke(...args)),
    refresh: (...args: Parameters<typeof refresh>) => track(refresh(...args)),
    /** Records that a refresh may have revoked an access token of its family; 201: it has. */
    revoked({ process, invokeMs, completeMs }: RefreshEvent, token: string, status: 0 | 201): void {
      events.push({ kind: 'revoke', process, token, invokeMs, completeMs, status })
    },
    /** Reports whether so many requests are waiting that more would only wait as well. */
    isBusy: (process: number) => (underWayAt[process] ?? 0) >= MAX_UNDER_WAY,
    /** Resolves when no request is in progress. */
    async settled(): Promise<void> {
      while (underWay.size > 0) await Promise.all(underWay)
    },
    close: client.close,
  }
}

/** Tells tokens of a family apart. */
const endOf = (token: string): string => token.slice(-16)

/** Runs the witness until the work has ended. Rejects at once if one of them rejects. */
export async function witnessed(
  watch: (signal: AbortSignal) => Promise<void>,
  work: () => Promise<void>,
): Promise<void> {
  const over = new AbortController()
  await Promise.all([watch(over.signal), work().finally(() => over.abort())])
}

/** Time between two checks. */
const PAUSE_MS = 200
/** On an idle machine an empty call needs a tenth of this. The gateways' timeout is 250 ms. */
const STARVED_MS = 75

/**
 * Calls each gateway's health endpoint, which has no dependencies, and sends Redis a `PING`, both
 * without the fault proxies. Records calls that take too long; a slow Redis counts for all
 * processes.
 */
export async function witness(
  { gateways, dependencies, events, now }: System,
  signal: AbortSignal,
): Promise<void> {
  const client = createClient(ONCE)

  async function look(processes: readonly number[], call: () => Promise<unknown>): Promise<void> {
    while (!signal.aborted) {
      const fromMs = now()
      await call()
      const untilMs = now()
      if (untilMs - fromMs > STARVED_MS)
        events.push({ kind: 'fault', name: STARVED, processes, fromMs, untilMs })
      await sleep(PAUSE_MS)
    }
  }

  const headers = { authorization: `Bearer ${dependencies?.restToken}` }
  await Promise.all([
    // On a cluster, a master may be away on purpose.
    dependencies !== undefined &&
      look(EVERYBODY, () =>
        client.send({ method: 'GET', url: `${dependencies.restUrl}/ping`, headers }),
      ),
    ...gateways.map((gateway, index) =>
      look([index], () =>
        client.send({ method: 'GET', url: `${gateway.url()}/-/healthz`, headers: {} }),
      ),
    ),
  ])
  client.close()
}
