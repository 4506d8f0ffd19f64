/** URLs of Client ID Metadata Documents, and the hosts that may be called for them. */
import { starIn } from '../../../validators/name-pattern.ts'

export interface DocumentHosts {
  /** Hosts, or `*.example.com` for all hosts below it. Undefined: every public host. */
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
  /** Accepts `http` and this machine, for development. */
  readonly loopback?: boolean | undefined
}

const MAX_CHARS = 512
/** Visible ASCII in one spelling: `new URL()` must change nothing. */
const PLAIN = /^[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/
/** A name with a dot whose last label is no number, so that it is no address. */
const PUBLIC_NAME = /^(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+[a-z][a-z\d-]*[a-z\d]$/
/** Names that no public server has (RFC 6761, RFC 6762, RFC 8375, and the reserved `internal`). */
const PRIVATE_NAME =
  /(?:^|\.)(?:localhost|local|internal|intranet|lan|home|corp|private|test|example|invalid|onion|arpa)$/
const LOOPBACK: readonly string[] = ['127.0.0.1', '[::1]', 'localhost']

/** Reports whether a client id is meant as the URL of a document. */
export const isDocumentUrl = (id: string): boolean => /^https?:\/\//.test(id)

/**
 * Returns the URL of a document that the gateway may call. Undefined for every other text: it must
 * have `https`, a path, one spelling, and no user information, query or fragment, and its host must
 * be a name of the public internet that the policy permits. Does NOT resolve the name.
 */
export function parseDocumentUrl(id: string, hosts: DocumentHosts): URL | undefined {
  if (id.length > MAX_CHARS || !PLAIN.test(id)) return undefined
  const url = URL.parse(id)
  if (url === null || url.href !== id || url.pathname === '/') return undefined
  if (url.username !== '' || url.password !== '' || /[?#]/.test(id)) return undefined
  const isLocal = hosts.loopback === true && isLoopbackHost(url)
  if (!isLocal && !(url.protocol === 'https:' && url.port === '' && isPublicName(url.hostname)))
    return undefined
  const isListed = (list: readonly string[]) =>
    list.some((pattern) => starIn(pattern, url.hostname) !== undefined)
  if (isListed(hosts.deny ?? [])) return undefined
  return hosts.allow === undefined || isListed(hosts.allow) ? url : undefined
}

export const isLoopbackHost = ({ hostname }: URL): boolean => LOOPBACK.includes(hostname)

const isPublicName = (host: string): boolean => PUBLIC_NAME.test(host) && !PRIVATE_NAME.test(host)
