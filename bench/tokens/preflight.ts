/** Starts the services of the scenario `tokens`, and checks that they work and refuse. */
import { randomUUID } from 'node:crypto'
import { newApiKey } from '../../src/access/tokens/api-key.ts'
import { sendClosed } from '../load/closed.ts'
import { bearing, expectAnswer, ORDERS_PATH, problem } from '../load/questions.ts'
import { bundleOnce, TOKENS_CONFIG } from '../stack/bundle.ts'
import type { Holder } from '../stack/credentials.ts'
import {
  type RunningGateway,
  type StartContext,
  startGateway,
  startGround,
} from '../stack/gateway.ts'
import {
  type Case,
  caseContestant,
  casesOf,
  prepareCallers,
  type TokenCallers,
  tokenRequest,
} from './cases.ts'
import {
  ALGORITHMS,
  type BatchAnswer,
  batchPath,
  FORGERIES,
  forged,
  OPERATIONS,
  SUBJECT,
} from './operations.ts'

const NAMES = ['operations', 'validation', 'gateway']
const CONNECTIONS = 20

/** Starts an isolate for each service. */
export async function startTokens(
  context: StartContext,
): Promise<{ readonly gateway: RunningGateway; readonly cases: readonly Case[] }> {
  const { directory, onProgress } = context
  onProgress('bundling')
  const bundle = await bundleOnce(TOKENS_CONFIG, directory)
  const ground = await startGround(context, ALGORITHMS)
  onProgress('signing tokens')
  const callers = await prepareCallers(ground)
  const variables = { CLIENTS: callers.clients }
  const gateway = await startGateway(context, { ground, bundle, names: NAMES, variables })
  const cases = casesOf(callers)
  await preflightOperations(gateway)
  for (const each of cases) await preflightCase(gateway, each, callers)
  return { gateway, cases }
}

/** Issued tokens must open the gateway if it accepts them; verifiers must refuse forged tokens. */
async function preflightOperations({ originOf }: RunningGateway): Promise<void> {
  const lastOf = async (path: string) => {
    const response = await fetch(originOf('operations') + path)
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${path}: got ${response.status}`)
    return (JSON.parse(text) as BatchAnswer).last
  }
  if ((await lastOf(batchPath(FORGERIES, 1))) !== ALGORITHMS.join())
    throw new Error('a verifier accepts forged tokens')
  for (const { id, opens } of OPERATIONS) {
    const last = await lastOf(batchPath(id, 2))
    if (id.startsWith('issue-') || id === 'uuid') {
      const response = await fetch(originOf('gateway') + ORDERS_PATH, {
        headers: bearing(last ?? ''),
      })
      await response.text()
      if (response.status !== (opens ? 200 : 401))
        throw new Error(`${id}: the gateway responds to its token with ${response.status}`)
    } else if (last !== SUBJECT) throw new Error(`${id}: wrong subject`)
  }
}

async function preflightCase(
  gateway: RunningGateway,
  each: Case,
  callers: TokenCallers,
): Promise<void> {
  const { url, questions } = caseContestant(each, gateway)
  const [good] = questions
  if (good === undefined) throw new Error(`${each.title}: no requests`)
  // The response reports whether the token was cached, so each token is sent once before.
  if (each.cached) {
    const anyAnswer = questions.map((question) => ({ ...question, answer: { holds: '' } }))
    await sendClosed({ url, questions: anyAnswer, connections: CONNECTIONS, until: 'once' })
  }
  await expectAnswer(url, good, each.title)
  each.issued?.clear()
  for (const bad of badQuestions(each, callers)) {
    const { method, body } = good
    const headers = { ...bad, 'cf-connecting-ip': newAddress() }
    const question = { ...problem('', 401), method, path: good.path, headers }
    const wrong = { ...question, answer: { holds: '' }, ...(body !== undefined && { body }) }
    await expectAnswer(url, wrong, `${each.title}, a bad credential`)
  }
}

/** Bad credentials come from other addresses, so that they do not count for the measured ones. */
const newAddress = (): string =>
  `2001:db8:${randomUUID().slice(0, 4)}:${randomUUID().slice(0, 4)}::1`

/** Returns headers with credentials that look like those of the case, but open nothing. */
function badQuestions(
  { id }: Case,
  callers: TokenCallers,
): readonly Readonly<Record<string, string>>[] {
  const forgedOf = ([holder]: readonly Holder[]) => bearing(forged(holder?.credential ?? ''))
  switch (id) {
    case 'issue-jwt':
    case 'issue-opaque': {
      const client = callers.client[id === 'issue-jwt' ? 'jwt' : 'opaque']
      return [tokenRequest({ ...client, secret: forged(client.secret) }, '').headers]
    }
    case 'validate-cached':
    case 'validate-many-cached':
    case 'validate-cold':
    case 'validate-cold-rsa':
      return [forgedOf(callers.few), forgedOf(callers.fewRsa), bearing(randomUUID())]
    case 'pipeline-jwt':
      return [forgedOf(callers.jwts)]
    case 'pipeline-opaque':
      return [bearing(randomUUID())]
    case 'pipeline-api-key':
      return [forgedOf(callers.apiKeys), bearing(newApiKey())]
  }
}
