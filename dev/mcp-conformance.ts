/**
 * Runs the conformance suite of MCP against a server, directly and through the gateway, and prints
 * both results as a table for each revision: `npm run mcp:conformance -- http://localhost:3000/mcp`. Exits
 * with 1 if more checks fail through the gateway. The suite is downloaded with npx.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { mcp } from '../src/features/mcp/index.ts'
import { definePolicy } from '../src/policy/policy.ts'
import { serve } from '../src/runtimes/node/index.ts'
import { startRedis } from './redis.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
/** Revisions with a set of required scenarios. */
const REVISIONS = ['2025-11-25', '2026-07-28']
const TIMEOUT_MS = 240_000
const ISSUER = 'https://issuer.test'

const [address] = process.argv.slice(2)
if (address === undefined || !URL.canParse(address)) {
  console.error(
    'mcp:conformance: needs the URL of an MCP server, such as http://localhost:3000/mcp',
  )
  process.exit(2)
}
const direct = new URL(address)
const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))
const { through, close } = await startGateway()
try {
  for (const revision of REVISIONS) {
    const before = await resultsOf(direct.href, revision, 'direct')
    const after = await resultsOf(through, revision, 'gateway')
    const scenarios = [...new Set([...before.keys(), ...after.keys()])].sort()
    console.log(`\nRevision ${revision}\n`)
    console.log('| Scenario | Direct | Through the gateway |\n|---|---|---|')
    for (const name of scenarios)
      console.log(`| \`${name}\` | ${before.get(name) ?? '-'} | ${after.get(name) ?? '-'} |`)
    const differing = scenarios.filter((name) => before.get(name) !== after.get(name))
    console.log(`\n${scenarios.length} scenarios, ${differing.length} with another result`)
    const worse = differing.filter((name) => faultsIn(after.get(name)) > faultsIn(before.get(name)))
    if (worse.length > 0 || scenarios.length === 0) process.exitCode = 1
  }
} finally {
  await close()
  rmSync(folder, { recursive: true })
}

/** Starts a gateway with all guards, and a server before it that adds a token to each request. */
async function startGateway() {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const keyOf = async (key: CryptoKey) => ({ ...(await exportJWK(key)), kid: 'k', alg: 'ES256' })
  const token = await new SignJWT({ roles: ['user'] })
    .setProtectedHeader({ alg: 'ES256', kid: 'k', typ: 'at+jwt' })
    .setIssuer(ISSUER)
    .setAudience(ISSUER)
    .setSubject('suite')
    .setJti('1')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)
  const redis = await startRedis({})
  let port = 0
  const front = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const forwarded = request({ port, method: incoming.method, path: incoming.url, headers })
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    response.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => front.listen(0, 'localhost', resolve))
  const publicUrl = `http://localhost:${(front.address() as AddressInfo).port}`
  const policy = definePolicy({
    roles: { user: ['mcp:use'] },
    limits: {},
    routes: [
      ...mcp({
        path: direct.pathname,
        permission: 'mcp:use',
        tools: { '*': { arguments: 'any' } },
        resources: { '*': true },
        prompts: { '*': true },
      }),
    ],
  })
  const gateway = await serve({
    policy,
    port: 0,
    env: {
      REDIS_URL: redis.url,
      // Otherwise events are written to the output.
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: publicUrl,
      ORIGIN_URL: direct.origin,
      SIGNING_KEYS: JSON.stringify({ keys: [await keyOf(privateKey)] }),
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: ISSUER, jwks: { keys: [await keyOf(publicKey)] } },
      ]),
    },
  })
  port = Number(new URL(gateway.url).port)
  return {
    through: publicUrl + direct.pathname,
    async close() {
      front.closeAllConnections()
      front.close()
      await gateway.close()
      await redis.close()
    },
  }
}

/** Returns the result of each scenario, by its name: `3 passed`, `1 passed, 1 failed`. */
async function resultsOf(
  url: string,
  revision: string,
  name: string,
): Promise<Map<string, string>> {
  const output = join(folder, revision, name)
  const set = ['--requirements', revision]
  const run = ['--yes', SUITE, 'server', '--url', url, ...set, '--output-dir', output]
  // It fails if a scenario does.
  await new Promise((resolve) => execFile('npx', run, { timeout: TIMEOUT_MS }, resolve))
  return new Map(
    readdirSync(output).map((scenario) => {
      const text = readFileSync(join(output, scenario, 'checks.json'), 'utf8')
      const checks = JSON.parse(text) as readonly { readonly status: string }[]
      const count = (status: string) => checks.filter((check) => check.status === status).length
      const parts = [
        `${count('SUCCESS')} passed`,
        ...(count('FAILURE') > 0 ? [`${count('FAILURE')} failed`] : []),
        ...(count('WARNING') > 0 ? [`${count('WARNING')} warnings`] : []),
      ]
      return [scenario.replace(/^server-|-\d{4}-\d\d-\d\dT.*$/g, ''), parts.join(', ')]
    }),
  )
}

/** Returns the number of checks that failed. A scenario without a result is worse than any. */
function faultsIn(result: string | undefined): number {
  if (result === undefined) return Number.POSITIVE_INFINITY
  return Number(/(\d+) failed/.exec(result)?.[1] ?? 0)
}
