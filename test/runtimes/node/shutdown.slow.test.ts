import { once } from 'node:events'
import { Agent, type IncomingMessage, request as send } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startNodeGateway } from './gateway.ts'

describe('the end of the process', () => {
  test('answers all requests in progress and refuses no request that it accepted [R36]', async () => {
    const held: (() => void)[] = []
    const gateway = await startNodeGateway({}, (_, response) => {
      held.push(() => response.end('[]'))
    })
    onTestFinished(() => gateway.close())
    const authorization = `Bearer ${await gateway.token()}`
    const responses = Array.from({ length: 20 }, () =>
      fetch(`${gateway.url}/orders`, { headers: { authorization } }),
    )
    await expect.poll(() => held.length).toBe(20)
    const ended = once(gateway.running.child, 'exit')
    gateway.running.child.kill('SIGTERM')
    await untilRefused(gateway.url)
    for (const end of held) end()
    const statuses = (await Promise.all(responses)).map(({ status }) => status)
    expect(statuses).toEqual(Array(20).fill(200))
    expect(await ended).toEqual([0, null])
  })

  test('cuts connections that outlast the grace period', async () => {
    const gateway = await startNodeGateway({ GRACE_MS: '200' }, (_, response) => {
      response.write('[')
    })
    onTestFinished(() => gateway.close())
    const authorization = `Bearer ${await gateway.token()}`
    const response = await fetch(`${gateway.url}/orders`, { headers: { authorization } })
    const ended = once(gateway.running.child, 'exit')
    gateway.running.child.kill('SIGTERM')
    await expect(response.text()).rejects.toThrow()
    expect(await ended).toEqual([0, null])
  })

  test('a connection that is kept alive is closed with its next response', async () => {
    let finish = () => {}
    const gateway = await startNodeGateway({}, (_, response) => {
      finish = () => response.end('[]')
    })
    onTestFinished(() => gateway.close())
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const headers = { authorization: `Bearer ${await gateway.token()}` }
    const request = send(`${gateway.url}/orders`, { agent, headers }).end()
    await expect.poll(() => gateway.reached.length).toBe(1)
    gateway.running.child.kill('SIGTERM')
    await untilRefused(gateway.url)
    finish()
    const [response] = await once(request, 'response')
    response.resume()
    expect(response.headers.connection).toBe('close')
  })

  test('a request whose body is still arriving is answered', async () => {
    const gateway = await startNodeGateway()
    onTestFinished(() => gateway.close())
    const claims = { roles: ['writer'] }
    const headers = { authorization: `Bearer ${await gateway.token({ claims })}` }
    const request = send(`${gateway.url}/orders`, { method: 'POST', headers })
    request.write('half of ')
    await expect.poll(() => gateway.reached.length).toBe(1)
    const ended = once(gateway.running.child, 'exit')
    gateway.running.child.kill('SIGTERM')
    await untilRefused(gateway.url)
    request.end('a body')
    const [response] = await once(request, 'response')
    response.resume()
    expect(response.statusCode).toBe(200)
    expect(await ended).toEqual([0, null])
  })

  test('a response whose body is still arriving is sent to its end', async () => {
    let finish = () => {}
    const gateway = await startNodeGateway({}, (_, response) => {
      response.write('half of ')
      finish = () => response.end('a body')
    })
    onTestFinished(() => gateway.close())
    const headers = { authorization: `Bearer ${await gateway.token()}` }
    const response = await fetch(`${gateway.url}/orders`, { headers })
    const ended = once(gateway.running.child, 'exit')
    gateway.running.child.kill('SIGTERM')
    await untilRefused(gateway.url)
    finish()
    expect(await response.text()).toBe('half of a body')
    expect(await ended).toEqual([0, null])
  })

  test('no request of a constant load on kept connections fails', async () => {
    const gateway = await startNodeGateway()
    onTestFinished(() => gateway.close())
    const agent = new Agent({ keepAlive: true, maxSockets: 16 })
    onTestFinished(() => agent.destroy())
    const headers = { authorization: `Bearer ${await gateway.token()}` }
    /** Status and `Connection`, or the code of the error. */
    const outcomes: string[] = []
    const answered = (code: string) => () => outcomes.filter((text) => text === code).length
    const load = setInterval(() => {
      const request = send(`${gateway.url}/orders`, { agent, headers })
      request.on('error', ({ code }: NodeJS.ErrnoException) => outcomes.push(String(code)))
      request.on('response', (response: IncomingMessage) => {
        response.resume().on('end', () => {
          outcomes.push(`${response.statusCode} ${response.headers.connection}`)
        })
      })
      request.end()
    }, 2)
    onTestFinished(() => clearInterval(load))
    await expect.poll(answered('200 keep-alive')).toBeGreaterThan(100)
    const ended = once(gateway.running.child, 'exit')
    gateway.running.child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    await expect.poll(answered('ECONNREFUSED')).toBeGreaterThan(0)
    clearInterval(load)
    expect(answered('200 close')()).toBeGreaterThan(0)
    expect(new Set(outcomes)).toEqual(new Set(['200 keep-alive', '200 close', 'ECONNREFUSED']))
  })
})

/** Resolves when the gateway accepts no more connections. */
const untilRefused = (url: string) =>
  expect
    .poll(() =>
      fetch(url).then(
        () => 'accepted',
        () => 'refused',
      ),
    )
    .toBe('refused')
