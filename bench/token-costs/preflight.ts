/** Makes sure that whatever is measured of tokens works, and refuses, before it is measured. */
import { randomUUID } from 'node:crypto'
import { newApiKey } from '../../src/tokens/api-key.ts'
import type { LoadRequest } from '../load.ts'
import type { Workerd } from '../workerd.ts'
import type { Holder, TokenCallers } from './callers.ts'
import { bearing, type Case, loadOf, tokenRequest } from './cases.ts'
import { forged } from './forged.ts'
import {
  ALGORITHMS,
  type BatchAnswer,
  batchPath,
  FORGERIES,
  OPERATIONS,
  SUBJECT,
} from './operations.ts'

const AT_ONCE = 20

/** Throws an `Error` of one line. */
export async function preflightTokens(
  workerd: Workerd,
  cases: readonly Case[],
  callers: TokenCallers,
): Promise<void> {
  await preflightOperations(workerd)
  for (const each of cases) {
    if (each.remembered) await showAll(workerd, each)
    const [good] = each.requests
    if (good !== undefined) await expect(workerd, each, good, 200)
    each.issued?.clear()
    for (const headers of wrongHeaders(each, callers))
      await expect(workerd, each, { ...good, headers: { ...headers, ...fromElsewhere() } }, 401)
  }
}

/** What is bad on purpose must not be on the account of what is measured. */
function fromElsewhere(): Record<string, string> {
  return {
    'cf-connecting-ip': `2001:db8:${randomUUID().slice(0, 4)}:${randomUUID().slice(0, 4)}::1`,
  }
}

/** Issued tokens must open the gateway where it takes them; verifiers must refuse forged ones. */
async function preflightOperations({ originOf }: Workerd): Promise<void> {
  const answerOf = async (path: string) => {
    const response = await fetch(originOf('operations') + path)
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${path}: answers ${response.status}`)
    return (JSON.parse(text) as BatchAnswer).last
  }
  if ((await answerOf(batchPath(FORGERIES, 1))) !== ALGORITHMS.join())
    throw new Error('a verifier takes forged tokens')
  for (const { id, opens } of OPERATIONS) {
    const last = await answerOf(batchPath(id, 2))
    if (id.startsWith('issue-') || id === 'uuid') {
      const headers = bearing(last ?? '')
      const response = await fetch(`${originOf('gateway')}/orders?limit=20`, { headers })
      await response.text()
      if (response.status !== (opens ? 200 : 401))
        throw new Error(`${id}: its token is answered with ${response.status}`)
    } else if (last !== SUBJECT) throw new Error(`${id}: finds another subject`)
  }
}

/** Shows every token once, so that each is remembered from then on. */
async function showAll(workerd: Workerd, each: Case): Promise<void> {
  const { url } = loadOf(each, workerd)
  for (let at = 0; at < each.requests.length; at += AT_ONCE) {
    const some = each.requests.slice(at, at + AT_ONCE)
    const answers = some.map(({ headers }) => fetch(url, { headers }).then((shown) => shown.text()))
    await Promise.all(answers)
  }
}

/** Credentials that look like those of the case, and open nothing. */
function wrongHeaders({ id }: Case, callers: TokenCallers): readonly Record<string, string>[] {
  const forgedOf = ([holder]: readonly Holder[]) => bearing(forged(holder?.credential ?? ''))
  switch (id) {
    case 'issue-jwt':
    case 'issue-opaque': {
      const client = callers.client[id === 'issue-jwt' ? 'jwt' : 'opaque']
      return [tokenRequest({ ...client, secret: forged(client.secret) }).headers]
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

async function expect(
  workerd: Workerd,
  each: Case,
  { headers, body, isRight }: LoadRequest,
  status: 200 | 401,
): Promise<void> {
  const { url, method, expectBody } = loadOf(each, workerd)
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  const text = await response.text()
  const isGood = expectBody === undefined ? isRight?.(text) : text === expectBody
  if (response.status === status && (status !== 200 || isGood)) return
  // A token may stand in a body, but not in a complaint.
  const told = response.status === 200 ? '' : ` ${text.slice(0, 200)}`
  throw new Error(`${each.title}: expected ${status}, was answered ${response.status}${told}`)
}
