/** Two gateways on Node over one Redis, of which one is killed under load. */
import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ACCESS_TOKEN, EXCHANGE, privateJwk } from '../../features/authorization-server/gateway.ts'
import { type NodeGateway, type NodeProcess, startNodeGateway } from './gateway.ts'

/** The limit of the route in `policy.ts`. */
const LIMIT = 15
const USERS = 16
const ROUNDS = 12
const CLIENT = { id: randomUUID(), secret: 'a secret of the test' }

let gateway: NodeGateway
let processes: readonly NodeProcess[]
beforeAll(async () => {
  const { id, secret } = CLIENT
  const secretSha256 = createHash('sha256').update(secret).digest('base64url')
  gateway = await startNodeGateway({
    SIGNING_KEYS: JSON.stringify({ keys: [privateJwk('es', 'ES256', 'ec')] }),
    CLIENTS: JSON.stringify([{ id, secretSha256, grants: [EXCHANGE, 'refresh_token'] }]),
  })
  processes = [await gateway.another(), gateway]
})
afterAll(() => gateway?.close())

test('SIGKILL of one of two processes under load exceeds no limit and ends no session [R35]', async () => {
  let answered = 0
  let cut = 0
  let turn = 0

  /** Sends a request to one process, and to the other if the connection is cut. */
  async function send(path: string, init: RequestInit): Promise<Response> {
    const [doomed, survivor] = processes
    const first = ++turn % 2 ? doomed : survivor
    try {
      const response = await fetch(first?.url + path, init)
      answered += 1
      if (answered === (USERS * ROUNDS) / 2) doomed?.running.child.kill('SIGKILL')
      return response
    } catch (error) {
      if (!(error instanceof TypeError) || first !== doomed) throw error
      cut += 1
      return fetch(survivor?.url + path, init)
    }
  }

  async function tokens(parameters: Readonly<Record<string, string>>) {
    const { id, secret } = CLIENT
    const authorization = `Basic ${btoa(`${id}:${encodeURIComponent(secret)}`)}`
    const body = new URLSearchParams(parameters)
    const response = await send('/oauth/token', {
      method: 'POST',
      headers: { authorization },
      body,
    })
    const text = await response.text()
    expect(response.status, text).toBe(200)
    return JSON.parse(text) as { access_token: string; refresh_token: string }
  }

  async function user(name: string): Promise<number> {
    const claims = { sub: name, roles: ['reader'] }
    let session = await tokens({
      grant_type: EXCHANGE,
      subject_token: await gateway.token({ claims }),
      subject_token_type: ACCESS_TOKEN,
    })
    let accepted = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const path of ['/limited', '/limited', '/orders']) {
        const headers = { authorization: `Bearer ${session.access_token}` }
        const { status } = await send(path, { headers })
        expect(status).toBeOneOf(path === '/orders' ? [200] : [200, 429])
        if (path === '/limited' && status === 200) accepted += 1
      }
      session = await tokens({ grant_type: 'refresh_token', refresh_token: session.refresh_token })
    }
    return accepted
  }

  const names = Array.from({ length: USERS }, (_, index) => `user-${index}`)
  const accepted = await Promise.all(names.map(user))
  expect(cut).toBeGreaterThan(0)
  for (const [index, name] of names.entries()) {
    const reached = gateway.reached.filter(
      ({ url, headers }) => url === '/limited' && headers['x-auth-subject'] === name,
    )
    expect(accepted[index]).toBeLessThanOrEqual(LIMIT)
    expect(reached.length).toBeLessThanOrEqual(LIMIT)
    // Requests that were cut count, although they may have had no answer.
    expect(reached.length).toBeGreaterThan(LIMIT / 2)
  }
})
