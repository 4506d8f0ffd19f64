import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { offer, offerInTurn } from '../../bench/load/open.ts'
import { startLoadProcesses } from '../../bench/load/processes.ts'
import type { Question } from '../../bench/load/questions.ts'

const BODY = 'right'
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** Starts a server. Returns its URL. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const QUESTION: Question = {
  method: 'GET',
  path: '/',
  headers: { 'x-one': '1' },
  status: 200,
  answer: BODY,
}
const targetOf = (url: string) => ({ url, questions: [QUESTION] })

describe('an open load', () => {
  test('offers its rate, whatever the response times', async () => {
    const url = await serve((_, response) => response.end(BODY))
    const { offered, sent, right, givenUp, latencies, lateness } = await offer({
      ...targetOf(url),
      ratePerSecond: 200,
      seconds: 0.5,
    })
    expect({ offered, sent, right, givenUp }).toEqual({
      offered: 100,
      sent: 100,
      right: 100,
      givenUp: 0,
    })
    expect(latencies.count).toBe(100)
    expect(lateness.percentile(0.5)).toBeLessThanOrEqual(latencies.percentile(0.5))
  })

  test('the latency of a blocked server counts for every request that was due', async () => {
    const STALL_MS = 400
    let stalledUntilMs: number | undefined
    const url = await serve((_, response) => {
      stalledUntilMs ??= performance.now() + STALL_MS
      setTimeout(() => response.end(BODY), Math.max(0, stalledUntilMs - performance.now()))
    })
    // A closed load of one connection would send one request in this time, and hide the others.
    const { right, latencies } = await offer({
      ...targetOf(url),
      ratePerSecond: 100,
      seconds: 0.4,
      maxOutstanding: 1,
      patienceMs: 60_000,
    })
    expect(right).toBe(40)
    expect(latencies.percentile(0.5)).toBeGreaterThan(STALL_MS / 4)
    expect(latencies.percentile(0.99)).toBeGreaterThan(STALL_MS * 0.9)
  })

  test('requests that cannot be sent in time are given up and counted', async () => {
    let [under, most] = [0, 0]
    const url = await serve((_, response) => {
      most = Math.max(most, ++under)
      setTimeout(() => {
        under--
        response.end(BODY)
      }, 50)
    })
    const { offered, sent, right, givenUp } = await offer({
      ...targetOf(url),
      ratePerSecond: 1_000,
      seconds: 0.5,
      maxOutstanding: 2,
      patienceMs: 20,
    })
    expect(offered).toBe(500)
    expect(most).toBeLessThanOrEqual(2)
    expect(givenUp).toBeGreaterThan(0)
    expect(sent + givenUp).toBe(offered)
    expect(right).toBe(sent)
  })

  test('random times have the same average rate', async () => {
    const url = await serve((_, response) => response.end(BODY))
    const { offered, right } = await offer({
      ...targetOf(url),
      ratePerSecond: 1_000,
      seconds: 1,
      spacing: 'poisson',
      patienceMs: 60_000,
    })
    // Ten standard deviations.
    expect(Math.abs(offered - 1_000)).toBeLessThan(10 * Math.sqrt(1_000))
    expect(right).toBe(offered)
  })

  test('several targets get the same share, each with its own latencies', async () => {
    const counts = [0, 0, 0]
    const urls = await Promise.all(
      counts.map((_, index) =>
        serve((__, response) => {
          counts[index] = (counts[index] ?? 0) + 1
          response.end(BODY)
        }),
      ),
    )
    const pace = { ratePerSecond: 300, seconds: 0.4 }
    const { each, right } = await offerInTurn(urls.map(targetOf), pace)
    expect(counts).toEqual([40, 40, 40])
    expect(each.map(({ count }) => count)).toEqual([40, 40, 40])
    expect(right).toBe(120)
  })
})

describe('a wrong answer', () => {
  const few = { ratePerSecond: 50, seconds: 0.2 }

  test.each<[string, RequestListener, string]>([
    ['another body', (_, response) => response.end('wrong'), 'with another body'],
    ['another status', (_, response) => response.writeHead(401).end(BODY), 'with status 401'],
    ['no answer', (request) => request.socket.destroy(), 'ECONNRESET'],
    [
      'half an answer',
      (_, response) => {
        response.writeHead(200, { 'content-length': 100 }).write(BODY)
        setTimeout(() => response.destroy(), 10)
      },
      'incomplete',
    ],
  ])('%s fails the load', async (_what, listener, message) => {
    const url = await serve(listener)
    await expect(offer({ ...targetOf(url), ...few })).rejects.toThrow(message)
  })

  test('503 fails the load unless it is allowed; then it is counted by its code', async () => {
    let asked = 0
    const url = await serve((_, response) => {
      if (asked++ % 2 === 0) response.end(BODY)
      else response.writeHead(503).end('{"code":"overloaded"}')
    })
    await expect(offer({ ...targetOf(url), ...few })).rejects.toThrow('with status 503')
    const { right, shed } = await offer({ ...targetOf(url), ...few, mayShed: true })
    expect({ right, shed }).toEqual({ right: 5, shed: { overloaded: 5 } })
  })

  test('503 without a code of the gateway is always wrong', async () => {
    const url = await serve((_, response) => response.writeHead(503).end('<html>'))
    const load = { ...targetOf(url), ...few, mayShed: true }
    await expect(offer(load)).rejects.toThrow('with status 503')
  })
})

describe('several processes', () => {
  test('share a rate, and their outcomes are merged', async () => {
    let asked = 0
    const url = await serve((_, response) => {
      asked++
      response.end(BODY)
    })
    const processes = await startLoadProcesses(2)
    closers.push(processes.close)
    const offered = await processes.offer({ ...targetOf(url), ratePerSecond: 200, seconds: 0.5 })
    expect(offered).toMatchObject({ offered: 100, right: 100, givenUp: 0 })
    expect(offered.latencies.count).toBe(100)
    expect(asked).toBe(100)
  })

  test('a wrong response in one process fails the load', async () => {
    let asked = 0
    const url = await serve((_, response) => response.end(asked++ === 7 ? 'wrong' : BODY))
    const processes = await startLoadProcesses(2)
    closers.push(processes.close)
    const load = { ...targetOf(url), ratePerSecond: 100, seconds: 0.2 }
    await expect(processes.offer(load)).rejects.toThrow('1 with another body')
  })
})
