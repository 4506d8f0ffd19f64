/** An event stream of a browser ends with its session, on both runtimes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { dial } from '../../origin/wire.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent } from './user-agent.ts'

describe.each(RUNTIMES)('on %s [S79]', (runtime) => {
  let gateway: SignInGateway
  beforeAll(async () => {
    gateway = await startGateway({ runtime, definition: { idleSeconds: 60, absoluteSeconds: 120 } })
    await gateway.redis.direct.flushall()
    Object.assign(gateway.provider.user, { subject: 'alice', roles: ['reader'] })
  })
  afterAll(() => gateway?.close())

  async function signedIn() {
    const browser = createUserAgent()
    await browser.visit(`${gateway.url}/orders`)
    return { browser, session: browser.jarOf(gateway.url).get(SESSION_COOKIE) ?? '' }
  }

  /** Opens the stream. Resolves to how it ends. */
  async function open(session: string) {
    const { port } = new URL(gateway.url)
    const socket = await dial(
      Number(port),
      `GET /events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${SESSION_COOKIE}=${session}\r\n\r\n`,
    )
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
    })
    const ended = new Promise<string>((resolve) => socket.on('close', () => resolve(text)))
    await expect.poll(() => text).toContain(': open')
    return { ended, socket }
  }

  test('a stream ends after a sign-out, and that of another session stays open', async () => {
    const mine = await signedIn()
    const other = await signedIn()
    const stream = await open(mine.session)
    const lasting = await open(other.session)
    let isOpen = true
    void lasting.ended.then(() => {
      isOpen = false
    })
    const left = await mine.browser.visit(`${gateway.url}/oauth/sign-out`, /./, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    expect(left.status).toBe(303)
    const text = await stream.ended
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    expect(text.endsWith('0\r\n\r\n')).toBe(false)
    expect(isOpen).toBe(true)
    lasting.socket.destroy()
  })

  test('a stream ends after a back-channel logout of its user', async () => {
    const { session } = await signedIn()
    const stream = await open(session)
    const token = await gateway.provider.logoutToken({ sub: 'alice' })
    const response = await fetch(`${gateway.url}/oauth/backchannel-logout`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `logout_token=${token}`,
    })
    expect(response.status).toBe(200)
    expect(await stream.ended).toMatch(/^HTTP\/1\.1 200 /)
  })
})
