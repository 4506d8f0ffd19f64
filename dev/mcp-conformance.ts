/**
 * Runs the conformance suite of MCP against a server, directly and through the gateway, and prints
 * both results as a table for each revision: `npm run mcp:conformance -- http://localhost:3000/mcp`. Exits
 * with 1 if a check fails only through the gateway. The suite is installed with npm.
 */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { mcp } from '../src/features/mcp/index.ts'
import { definePolicy } from '../src/policy/policy.ts'
import { serve } from '../src/runtimes/node/index.ts'
import { type Check, installSuite, REVISIONS, worseThan } from './mcp-conformance/suite.ts'
import { startTokenFront } from './mcp-conformance/token-front.ts'
import { startRedis } from './redis.ts'

const ISSUER = 'https://issuer.test'

const [address] = process.argv.slice(2)
if (address === undefined || !URL.canParse(address)) {
  console.error(
    'mcp:conformance: needs the URL of an MCP server, such as http://localhost:3000/mcp',
  )
  process.exit(2)
}
const direct = new URL(address)
const suite = installSuite()
if (suite === undefined) process.exit(2)
const { through, close } = await startGateway()
try {
  for (const revision of REVISIONS) {
    const before = await suite.run(direct.href, revision)
    const after = await suite.run(through, revision)
    const rows = [...new Set([...before.keys(), ...after.keys()])]
      .sort()
      .map((name) => [name, summarize(before.get(name)), summarize(after.get(name))] as const)
    console.log(`\nRevision ${revision}\n`)
    console.log('| Scenario | Direct | Through the gateway |\n|---|---|---|')
    for (const [name, ...results] of rows) console.log(`| \`${name}\` | ${results.join(' | ')} |`)
    const differing = rows.filter(([, one, other]) => one !== other)
    console.log(`\n${rows.length} scenarios, ${differing.length} with another result`)
    const worse = worseThan(before, after)
    for (const failure of worse) console.log(`only through the gateway: ${failure}`)
    if (worse.length > 0 || rows.length === 0) process.exitCode = 1
  }
} finally {
  await close()
  suite.remove()
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
  const front = await startTokenFront(token)
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
      PUBLIC_URL: front.url,
      ORIGIN_URL: direct.origin,
      SIGNING_KEYS: JSON.stringify({ keys: [await keyOf(privateKey)] }),
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: ISSUER, jwks: { keys: [await keyOf(publicKey)] } },
      ]),
    },
  })
  front.to(gateway.url)
  return {
    through: front.url + direct.pathname,
    async close() {
      front.close()
      await gateway.close()
      await redis.close()
    },
  }
}

/** Returns the result of a scenario: `3 passed`, `1 passed, 1 failed`, or `-` without one. */
function summarize(checks: readonly Check[] | undefined): string {
  if (checks === undefined) return '-'
  const count = (status: string) => checks.filter((check) => check.status === status).length
  return [
    `${count('SUCCESS')} passed`,
    ...(count('FAILURE') > 0 ? [`${count('FAILURE')} failed`] : []),
    ...(count('WARNING') > 0 ? [`${count('WARNING')} warnings`] : []),
  ].join(', ')
}
