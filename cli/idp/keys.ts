/** Finds and downloads the key set of an issuer, as the gateway does. */
import { inspectKeySet, type Metadata } from '../../dev/start/key-sets.ts'
import { importKeys, type KeyRing } from '../../src/access/tokens/key-ring.ts'
import { shown } from '../../src/access/tokens/rejection.ts'
import { type IssuerConfig, needsDiscovery } from '../../src/validators/issuer.ts'
import { ALGORITHMS } from '../../src/validators/jwk.ts'
import { type Check, failed, passed } from './check.ts'

export interface Keys {
  readonly checks: readonly Check[]
  /** For all algorithms. Undefined if there is no usable key. */
  readonly ring?: KeyRing
  /** The key set as it was downloaded. Undefined for keys of the configuration. */
  readonly text?: string
  /** Undefined if no metadata was found or needed. Its `issuer` may be another one. */
  readonly metadata?: Metadata | undefined
}

/** A shared secret is never in a public key set. */
const ASYMMETRIC = ALGORITHMS.filter((algorithm) => algorithm !== 'HS256')

/** Downloads the metadata and the key set, unless the configuration has the keys, or says that there are none. */
export async function keysOf(config: IssuerConfig): Promise<Keys> {
  if (config.jwks !== undefined) {
    const imported = await importKeys(config.jwks, ALGORITHMS)
    const checks = [passed('key set', 'in the configuration')]
    return { checks, ...(imported && { ring: imported.ring }) }
  }
  if (config.keySet === 'none') {
    const mistake = 'the entry has keySet "none", so a JWT that names this issuer is refused'
    const remedy = 'If the issuer signs JWTs, remove keySet from its entry in ISSUERS'
    return { checks: [failed('key set', 'none', mistake, { remedy })] }
  }
  const signal = new AbortController().signal
  const report = await inspectKeySet({ ...config, algorithms: [...ASYMMETRIC] }, signal)
  const { metadata } = report
  if (report.mistake !== undefined) {
    return { checks: [failureOf(config, report.mistake, metadata)], metadata }
  }
  const found = metadata === undefined ? [] : [passed('discovery', metadata.issuer, config.issuer)]
  const seen = passed('key set', report.location, report.algorithms)
  const checks = [...found, seen]
  return { checks, ring: report.ring, text: report.text, metadata }
}

function failureOf(config: IssuerConfig, mistake: string, metadata: Metadata | undefined): Check {
  if (!needsDiscovery(config) || !mistake.startsWith('metadata')) {
    const remedy = 'Correct jwksUri, or the way to it: the gateway answers 503 while it has no keys'
    return failed('key set', 'not available', mistake, { remedy })
  }
  const named = metadata?.issuer
  if (typeof named === 'string' && named !== config.issuer) {
    const slash = `${named}/` === config.issuer || named === `${config.issuer}/`
    const names = `the metadata names the issuer ${shown(named)}, and expected is ${shown(config.issuer)}`
    const text = slash ? `${names}: they differ in the slash at the end` : names
    const remedy = slash
      ? 'Write the issuer exactly as in its metadata'
      : 'Set the public URL of the provider, or write the issuer that its tokens and its metadata name'
    return failed('discovery', named, text, { expected: shown(config.issuer), remedy })
  }
  const remedy =
    'Compare the issuer with the documentation of the provider. If it publishes no metadata, set jwksUri'
  return failed('discovery', 'not available', mistake, { remedy })
}
