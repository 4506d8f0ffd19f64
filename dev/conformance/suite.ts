/** Starts the conformance suite of the OpenID Foundation from a folder with its build. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { type Certificate, startSecureFront } from './secure-front.ts'

const JAR = 'target/fapi-test-suite.jar'
const START_SECONDS = 240

export interface SuiteOptions {
  /** The folder with the suite's source and its build. */
  readonly folder: string
  /** The URI of a server of MongoDB's protocol, or a folder with the jars of mongo-java-server. */
  readonly database: string
  readonly java: string
  readonly certificate: Certificate
}

/** A running suite. */
export interface Suite {
  /** Such as `https://localhost:41234`. */
  readonly url: string
  close(): void
}

/** Starts the suite, with TLS in front. Throws an `Error` of one line if it does not start. */
export async function startSuite(options: SuiteOptions): Promise<Suite> {
  const jar = join(options.folder, JAR)
  if (!existsSync(jar)) throw new Error(`${jar} does not exist: build the suite with Maven first`)
  const ends: (() => void)[] = []
  const close = () => {
    for (const end of ends.toReversed()) end()
  }
  try {
    const [port, securePort] = [await freePort(), await freePort()]
    const database = await databaseOf(options, ends)
    const url = `https://localhost:${securePort}`
    const settings = {
      'server.address': '127.0.0.1',
      'server.port': port,
      'spring.mongodb.uri': database,
      'openid.mongodb.targetFeatureCompatibilityVersion': '',
      'fintechlabs.base_url': url,
      'fintechlabs.base_mtls_url': url,
      'fintechlabs.devmode': true,
    }
    const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
    const suite = run(options.java, ['-Xmx1500m', '-jar', jar, ...flags], ends)
    await answers(`http://127.0.0.1:${port}/api/server`, suite)
    ends.push(await startSecureFront(options.certificate, securePort, port))
    return { url, close }
  } catch (error) {
    close()
    throw error
  }
}

async function databaseOf({ database, java }: SuiteOptions, ends: (() => void)[]): Promise<string> {
  if (database.startsWith('mongodb')) return database
  if (!existsSync(database) || !readdirSync(database).some((file) => file.endsWith('.jar')))
    throw new Error(`${database}: no URI of MongoDB, and no folder with jars`)
  const port = await freePort()
  const program = join(import.meta.dirname, 'database.java')
  run(java, ['-Xmx512m', '-cp', join(database, '*'), program, `${port}`], ends)
  return `mongodb://127.0.0.1:${port}/test_suite`
}

function run(command: string, parameters: readonly string[], ends: (() => void)[]): ChildProcess {
  const child = spawn(command, parameters, { stdio: 'ignore' })
  child.on('error', () => {})
  const end = () => child.kill()
  process.once('exit', end)
  ends.push(end)
  return child
}

/** Resolves when a server responds. The suite waits for its database by itself. */
async function answers(url: string, suite: ChildProcess): Promise<void> {
  // Otherwise it redirects to a URL with TLS.
  const headers = { 'x-forwarded-proto': 'https' }
  for (let second = 0; second < START_SECONDS && suite.exitCode === null; second++) {
    const response = await fetch(url, { headers }).catch(() => undefined)
    if (response?.ok === true) return
    await delay(1_000)
  }
  throw new Error(`the suite did not start within ${START_SECONDS} s`)
}
