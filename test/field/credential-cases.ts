/** Cases about API keys, their quotas and bills, and headers with more than one credential. */
import type { FieldCase } from './case.ts'
import { EVERY_RUNTIME } from './runtimes.ts'

const proven = (symptom: string, expected: string, tests: readonly string[]): FieldCase => ({
  symptom,
  sources: ['own'],
  expected,
  runtimes: EVERY_RUNTIME,
  proof: { tests },
})

export const credentialCases: readonly FieldCase[] = [
  proven(
    'a disabled API key disappears from the list before its last bill',
    'ended keys stay listed with their status, end, plan and prefix until their retention ends',
    [
      'test/features/operators/api-keys.slow.test.ts > ended keys stay listed with their status, end, plan and prefix, and a filter selects them',
      'test/redis/ended-keys.slow.test.ts > ended keys vanish with their secrets at the end of the retention',
    ],
  ),
  proven(
    'a disabled key whose record is kept is valid again when its revocation lapses',
    '401: the record alone refuses the key, in every order of changes',
    [
      'test/redis/ended-keys.slow.test.ts > a revoked key is refused by its record alone, and names its caller',
      'test/redis/ended-keys.slow.test.ts > in any order of changes, no isolate accepts an ended secret, and every key is listed (seed %d)',
    ],
  ),
  proven(
    'the 429 of a quota names neither the plan nor the date at which the quota renews',
    '429 with the limit, the plan and `renewsAt`, in one call to Redis',
    [
      'test/features/plans/admin.test.ts > the 429 of a quota names its limit, its plan and when it renews, in one call to Redis',
    ],
  ),
  proven(
    'the bill of a customer lacks the requests of keys that have ended',
    'the sum over all pages is the bill, with ended keys',
    [
      'test/audit/usage.slow.test.ts > of a customer adds up to its requests, by key and route, page by page, ended keys included',
    ],
  ),
  proven(
    'the audit event of a request with an ended key has no caller',
    'the event names the caller; only an unknown key has none',
    [
      'test/features/operators/api-keys.slow.test.ts > an event of a revoked key names the caller, in isolates that cached it or not',
      'test/redis/ended-keys.slow.test.ts > an expired key is refused as expired, names its caller, and does not live again',
    ],
  ),
  proven(
    'a quotation mark without an end hides a second credential in Authorization',
    '400: a list with such a quotation mark is refused (RFC 9110 section 11.4)',
    [
      'test/access/tokens/credential.test.ts > refuses a list in which a quotation mark hides where a credential ends',
    ],
  ),
  proven(
    'a scheme that only the origin verifies passes beside the token of the gateway',
    '400 ambiguous_credentials, and the origin receives nothing',
    [
      'test/access/admission/unverified-credentials.test.ts > with a token in %s, "%s" is 400 and reaches no origin',
    ],
  ),
  proven(
    'a banned address guesses passwords that only the origin verifies',
    '403 before the origin is called',
    [
      'test/access/admission/unverified-credentials.test.ts > a ban of the credentials of an address stops those that only the origin verifies',
    ],
  ),
]
