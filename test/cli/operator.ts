/** A gateway as `npm start` runs it, and the command line in the same checkout. */
import { parseEnv } from 'node:util'
import { freePort } from '../harness/process.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeCheckout } from '../start/checkout.ts'
import { type Outcome, type RunningCommand, runCli, startCli } from './command-line.ts'

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: string
}

export interface Operator {
  readonly url: string
  readonly redis: TestRedis
  /** Of the checkout's own client. */
  clientId(): Promise<string>
  /** Runs a command that has to succeed, and returns what it says on stdout. */
  does(...args: string[]): Promise<string>
  /** As `does`, with `--json`: the answer. */
  gets<Answer = Record<string, string>>(...args: string[]): Promise<Answer>
  /** Runs a command, however it ends. */
  tries(args: readonly string[], input?: string): Promise<Outcome>
  /** As `tries`, as another client than the checkout's. */
  triesAs(client: Credentials, ...args: string[]): Promise<Outcome>
  starts(...args: string[]): RunningCommand
  /** The status of `GET /orders` for a bearer of `credential`. */
  statusFor(credential: string): Promise<number>
  close(): Promise<void>
}

/** `env` is for the gateway, on top of what it needs. */
export async function startOperator(env: Record<string, string> = {}): Promise<Operator> {
  const checkout = await makeCheckout()
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const gateway = checkout.run(['node', 'dev/start.ts'], {
    PORT: String(port),
    ...redisVars(redis),
    ...env,
  })
  await gateway.printed(/^npx portcullis /m)
  const surroundings = { cwd: checkout.path, env: { PORTCULLIS_URL: url } }

  async function does(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(args, surroundings)
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`)
    return stdout
  }
  return {
    url,
    redis,
    async clientId() {
      return parseEnv(await checkout.file('.dev.vars')).PORTCULLIS_CLIENT_ID ?? ''
    },
    does,
    gets: async (...args) => JSON.parse(await does(...args, '--json')),
    tries: (args, input = '') => runCli(args, { ...surroundings, input }),
    triesAs({ clientId, clientSecret }, ...args) {
      const env = { PORTCULLIS_CLIENT_ID: clientId, PORTCULLIS_CLIENT_SECRET: clientSecret }
      return runCli(args, { ...surroundings, env: { ...surroundings.env, ...env } })
    },
    starts: (...args) => startCli(args, surroundings),
    async statusFor(credential) {
      const headers = { Authorization: `Bearer ${credential}` }
      return (await fetch(`${url}/orders`, { headers })).status
    },
    async close() {
      await checkout.close()
      await redis.close()
    },
  }
}
