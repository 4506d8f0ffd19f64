/** Describes why a server sent no response. */

/** Error codes for a certificate whose authority Node does not trust, such as that of a company. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)/

const NOT_TRUSTED = 'has a certificate that Node does not trust'

/**
 * Describes a fetch error. fetch reports the code in the error's cause, or in the first of several.
 */
export function unreachable({ cause }: Error): string {
  const { code, errors } = (cause ?? {}) as { code?: unknown; errors?: { code?: unknown }[] }
  const found = String(code ?? errors?.[0]?.code ?? 'connection failed')
  if (found === 'ENOTFOUND' || found === 'EAI_AGAIN') return `has an unknown host (${found})`
  if (UNTRUSTED.test(found)) return `${NOT_TRUSTED} (${found})`
  return `cannot be reached (${found})`
}

/** Returns what to do about what {@link unreachable} described. */
export function remedyFor(described: string, otherwise: string): string {
  return described.includes(NOT_TRUSTED)
    ? 'Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its authority.'
    : otherwise
}
