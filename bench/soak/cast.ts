/** Creates all participants: callers, callers to revoke, the operator. */
import {
  addressOf,
  type Caller,
  createPool,
  fixedCaller,
  poolSize,
  tokenCaller,
} from '../chaos/callers.ts'
import type { Issuer } from '../chaos/issuers.ts'
import { createCondemned } from './condemned.ts'
import { createLoad } from './load.ts'
import { createMix, INLINE_SHARE, SHARES } from './mix.ts'
import { createOperator } from './operator.ts'
import { MAX_RATE, type SoakOptions } from './options.ts'
import { goodShot, type Sender } from './sender.ts'
import type { System } from './system.ts'

const ROLES = ['writer']
/** Requests that fill the caches. */
const AT_ONCE = 16
/** Attempts. A busy machine may miss a deadline. */
const ATTEMPTS = 5

/** Creates the callers. Throws an `Error` if the gateways do not issue their credentials. */
export async function prepareCallers({
  system,
  sender,
  options,
  random,
}: {
  readonly system: System
  readonly sender: Sender
  readonly options: SoakOptions
  random(): number
}) {
  const { issuers } = system
  const operator = createOperator(sender, system.operator)
  if (!(await operator.login())) throw new Error('the operator received no token')
  // The peak is not measured yet, so this uses the maximum rate.
  const rate = options.rate ?? MAX_RATE
  let addresses = 0
  const address = () => addressOf(addresses++)
  const some = (share: number) => poolSize((rate * share) / 100)
  const tokenCallers = (issuer: Issuer, count: number) =>
    Array.from({ length: count }, (_, index) =>
      tokenCaller(issuer, `caller-${index}`, { address: address(), roles: ROLES }),
    )
  const fixedPool = async (
    name: string,
    share: number,
    make: (subject: string) => Promise<string | undefined>,
  ) => {
    const callers: Caller[] = []
    while (callers.length < some(share)) {
      const subject = `${name}-${callers.length}`
      callers.push(fixedCaller(subject, await patiently(() => make(subject)), address()))
    }
    return createPool(callers)
  }

  const condemned = createCondemned({ sender, operator, issuer: issuers.inline, random })
  const inline = tokenCallers(issuers.inline, Math.max(options.callers, some(INLINE_SHARE)))
  for (let at = 0; at < options.callers; at += AT_ONCE)
    await Promise.all(
      inline.slice(at, at + AT_ONCE).map(async ({ subject, address, credential }) => {
        const caller = { address, credential: await credential() }
        const shot = goodShot('first', caller, { path: '/orders', subject })
        return Promise.all(system.gateways.map((_, gateway) => sender.send(shot, { gateway })))
      }),
    )
  const shotOf = createMix({
    inline: createPool(inline),
    remote: createPool(tokenCallers(issuers.remote, some(SHARES.remote))),
    opaque: await fixedPool('opaque', SHARES.opaque, operator.mintOpaque),
    apiKeys: await fixedPool('robot', SHARES.apiKey, operator.createApiKey),
    condemned,
    issuers,
    random,
  })
  return { load: createLoad({ sender, shotOf, random }), condemned, operator }
}

async function patiently(make: () => Promise<string | undefined>): Promise<string> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const made = await make()
    if (made !== undefined) return made
  }
  throw new Error('the operator could not create a credential')
}
