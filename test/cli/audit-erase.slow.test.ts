import { afterEach, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

const ID = '0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'
const ENV = { PORTCULLIS_CLIENT_ID: 'a-client', PORTCULLIS_CLIENT_SECRET: 'a-secret' }
const PERSON = ['--subject', 'alice', '--issuer', 'https://idp.example']
const pending = { id: ID, state: 'pending', orderedAt: '2026-11-20T12:00:00.000Z', rows: 0 }
const done = { ...pending, state: 'done', rows: 12 }

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
  await closeStubGateways()
})

const answers = (state: object) => ({
  '/-/admin/audit/erasures': { status: 201, body: pending },
  [`/-/admin/audit/erasures/${ID}`]: { body: state },
})

test('audit erase orders an erasure, waits until it is done, and prints the number of rows [S66]', async () => {
  const { url, requests } = await startStubGateway(answers(done))
  const { code, stdout, stderr } = await runHere(['audit', 'erase', ...PERSON, '--url', url], {
    env: ENV,
  })
  expect(code, stderr).toBe(0)
  const call = requests.find(({ path }) => path === '/-/admin/audit/erasures')
  expect(call).toMatchObject({ method: 'POST' })
  expect(JSON.parse(call?.body ?? '')).toEqual({ subject: 'alice', issuer: 'https://idp.example' })
  expect(stdout).toMatch(/^id +0193b0a4.*\nstate +done\n.*\nrows +12\n$/s)
  expect(stderr).toBe(`Erasure ${ID} is ordered.\nIt is done.\n`)
})

test('audit erase --json --wait 0 prints only the erasure, without waiting for it', async () => {
  const { url, requests } = await startStubGateway(answers(done))
  const args = ['audit', 'erase', ...PERSON, '--wait', '0', '--json', '--url', url]
  const { code, stdout, stderr } = await runHere(args, { env: ENV })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual(pending)
  expect(requests.map(({ path }) => path)).not.toContain(`/-/admin/audit/erasures/${ID}`)
})

test('audit erase reports that it found no event, and exits with 0', async () => {
  const { url } = await startStubGateway(answers({ ...done, rows: 0 }))
  const args = ['audit', 'erase', ...PERSON, '--url', url]
  const { code, stdout, stderr } = await runHere(args, { env: ENV })
  expect(code).toBe(0)
  expect(stdout).toMatch(/\nrows +0\n$/)
  expect(stderr).toContain('No event has this subject and issuer: nothing was erased.\n')
})

test('audit erase exits with 1 after --wait, and reports that the erasure continues', async () => {
  const { url } = await startStubGateway(answers({ ...pending, state: 'running' }))
  const args = ['audit', 'erase', ...PERSON, '--wait', '1s', '--url', url]
  const { code, stdout, stderr } = await runHere(args, { env: ENV })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain(
    `erasure_not_done: it continues without the command: portcullis audit erasure ${ID}`,
  )
})

test('audit erasure prints the state of an erasure', async () => {
  const { url } = await startStubGateway(answers(done))
  const { code, stdout } = await runHere(['audit', 'erasure', ID, '--url', url, '--json'], {
    env: ENV,
  })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual(done)
})

test('audit erase without --issuer exits with 2 and sends nothing', async () => {
  let calls = 0
  server = await startHttpServer((_, response) => {
    calls += 1
    response.end()
  })
  const args = ['audit', 'erase', '--subject', 'alice', '--url', server.url]
  const { code, stderr } = await runCli(args, { env: ENV })
  expect(code).toBe(2)
  expect(stderr).toContain('--issuer')
  expect(calls).toBe(0)
})
