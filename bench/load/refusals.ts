/** Requests that the pipeline refuses: each gateway is checked with them, and they are measured. */
import type { BenchTokens } from '../stack/credentials.ts'
import { bearing, expectAnswer, forged, problem, type Question, read } from './questions.ts'

export interface Refusal {
  readonly id: string
  readonly title: string
  /** Whether the gateway refuses without a call to Redis. */
  readonly isLocal: boolean
  readonly question: Question
}

/** Returns the refusals in the order of the pipeline. */
export function refusalsOf({
  writers: [good = ''],
  powerless,
}: Pick<BenchTokens, 'writers' | 'powerless'>): readonly Refusal[] {
  return [
    {
      id: 'ambiguous-path',
      title: 'an ambiguous path',
      isLocal: true,
      question: problem('ambiguous_path', 400, { path: '/orders%2f1', headers: bearing(good) }),
    },
    {
      id: 'no-token',
      title: 'no token',
      isLocal: true,
      question: problem('missing_token', 401),
    },
    {
      id: 'forged-token',
      title: 'a forged token',
      isLocal: true,
      question: problem('invalid_token', 401, { headers: bearing(forged(good)) }),
    },
    {
      id: 'no-permission',
      title: 'a caller without the permission',
      isLocal: false,
      question: problem('insufficient_permission', 403, { headers: bearing(powerless) }),
    },
    {
      id: 'bad-query',
      title: 'a bad query',
      isLocal: false,
      question: problem('invalid_input', 422, {
        path: '/orders?limit=0',
        headers: bearing(good),
      }),
    },
  ]
}

/** Checks a good request and all refusals. Throws an `Error` of one line for a wrong response. */
export async function checkGateway(title: string, url: string, tokens: BenchTokens): Promise<void> {
  await expectAnswer(url, read(tokens.writers[0] ?? ''), `${title}, a good request`)
  for (const refusal of refusalsOf(tokens))
    await expectAnswer(url, refusal.question, `${title}, ${refusal.title}`)
}
