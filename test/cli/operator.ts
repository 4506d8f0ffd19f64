/** A gateway as `npm start` runs it, and the command line in the same checkout. */
import { parseEnv } from 'node:util'
import { makeCheckout } from '../dev/start/checkout.ts'
import { freePort } from '../harness/process.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { runHere } from './command-here.ts'
import { type Outcome, type RunningCommand, runCli, startCli } from './command-line.ts'

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: string
}

export interface Operator {
  readonly url: string
  readonly redis: TestRedis
  /** Returns the id of the checkout's own client. */
  clientId(): Promise<string>
  /** Runs a command that must succeed. Returns its stdout. */
  run(...args: string[]): Promise<string>
  /** Like `run`, with `--json`. Returns the parsed stdout. */
  runJson<Answer = Record<string, string>>(...args: string[]): Promise<Answer>
  /** Runs a command that may fail. */
  attempt(args: readonly string[], input?: string): Promise<Outcome>
  /** Like `attempt`, in a process of its own, as a shell does. */
  attemptInProcess(args: readonly string[]): Promise<Outcome>
  /** Like `attempt`, with the credentials of another client. */
  attemptAs(client: Credentials, ...args: string[]): Promise<Outcome>
  /** Starts a command that runs until it is stopped. */
  start(...args: string[]): RunningCommand
  /** Returns the status of `GET /orders` with `credential` as bearer token. */
  statusFor(credential: string): Promise<number>
  close(): Promise<void>
}

/** Starts the gateway; `env` adds variables to its environment. */
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
  const environment = { cwd: checkout.path, env: { PORTCULLIS_URL: url } }

  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runHere(args, environment)
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`)
    return stdout
  }
  return {
    url,
    redis,
    async clientId() {
      return parseEnv(await checkout.file('.dev.vars')).PORTCULLIS_CLIENT_ID ?? ''
    },
    run,
    runJson: async (...args) => JSON.parse(await run(...args, '--json')),
    attempt: (args, input = '') => runHere(args, { ...environment, input }),
    attemptInProcess: (args) => runCli(args, environment),
    attemptAs({ clientId, clientSecret }, ...args) {
      const env = { PORTCULLIS_CLIENT_ID: clientId, PORTCULLIS_CLIENT_SECRET: clientSecret }
      return runHere(args, { ...environment, env: { ...environment.env, ...env } })
    },
    start: (...args) => startCli(args, environment),
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
