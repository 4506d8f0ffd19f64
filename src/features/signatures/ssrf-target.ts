/** Server-side request forgery: a value is a URL or an address of an internal network. */
import ipaddr from 'ipaddr.js'
import {
  anyOf,
  bitsOf,
  DECISIVE,
  NOTABLE,
  oneOf,
  type SignatureSet,
  wordsOf,
} from './signature-set.ts'

const SCORES = {
  metadata: DECISIVE,
  internal: DECISIVE,
  development: NOTABLE,
  wrapper: DECISIVE,
  callback: DECISIVE,
}
const BIT = bitsOf(SCORES)

/** Domains of services that record what a scanned server fetches. */
const CALLBACK =
  /[\w-]\.(?:burpcollaborator\.net|oastify\.com|interact\.sh|oast\.(?:me|pro|live|site|online|fun))\b/i

const UNSEEN = /[\t\n\r]/g
/** A text with at least this many words is a sentence and not a value. */
const MAX_WORDS = 4
/** A scheme at the start of a value, or the start of a network-path reference. */
const URL_LIKE = /^[\s"'(<]{0,4}(?:url[:=]\s{0,2})?(?:([a-z][a-z0-9+.-]{1,20}):|(?=[/\\]{2}))/i
/** Schemes with which libraries read files or call services. */
const WRAPPERS = anyOf(
  'i',
  String.raw`^file:(?:[/\\]|%2f)`,
  String.raw`^${oneOf(
    'gopher dict ldaps? ldapi tftp netdoc jar php phar zip expect ogg rar glob zlib ssh2',
    String.raw`compress\.(?:zlib|bzip2) view-source local_file vbscript`,
  )}:(?:\/\/|http|file)`,
)
const FETCHED = wordsOf('http https ws wss ftp')
/** Metadata services of most clouds, Alibaba, Amazon's containers, Oracle and Azure. */
const METADATA_ADDRESSES = wordsOf(
  '169.254.169.254 100.100.100.200 169.254.170.2 192.0.0.192 fd00:ec2::254 fd20:ce::254',
  '169.254.169.123 168.63.129.16',
)
const METADATA_NAMES = /^(?:metadata(?:\.google\.internal|\.goog)?|instance-data(?:\..{0,40})?)$/
const BARE_METADATA = /^[\s"']{0,2}(?:169\.254\.169\.254|metadata\.google\.internal)(?:[/:?\s]|$)/i
const INTERNAL_NAMES = anyOf(
  '',
  String.raw`^(?:.{1,100}\.)?(?:localhost|localtest\.me|lvh\.me|svc\.cluster\.local)$`,
  String.raw`^(?:localhost\.localdomain|ip6-localhost|ip6-loopback|host\.docker\.internal)$`,
  String.raw`^kubernetes(?:\.default(?:\.svc)?)?$`,
)
/** Names that resolve to the address that they contain. */
const EMBEDDED = /(?:^|[.-])(\d{1,3}[.-]\d{1,3}[.-]\d{1,3}[.-]\d{1,3})\.(?:nip|sslip|xip)\.io$/
/** Address ranges that are not part of the public Internet. */
const INSIDE = wordsOf('loopback private linkLocal uniqueLocal unspecified carrierGradeNat')
/** Lowest port of applications on a user's own machine (RFC 8252 section 7.3). */
const FIRST_USER_PORT = 1_024
/** Ports of databases and orchestrators. No redirect leads to them. */
const SERVICE_PORTS = wordsOf(
  '2375 2376 2379 3306 5432 5984 6379 6443 8500 9200 9300 10250 11211 27017',
)

export const ssrfTarget: SignatureSet = {
  category: 'ssrf_target',
  scores: SCORES,
  scan(text) {
    return targetIn(text) | (CALLBACK.test(text) ? BIT.callback : 0)
  },
}

function targetIn(text: string): number {
  const match = URL_LIKE.exec(text)
  if (match === null) return BARE_METADATA.test(text) ? BIT.metadata : 0
  const [opening, scheme] = match
  const start = scheme === undefined ? opening.length : opening.length - scheme.length - 1
  // URL parsers remove these characters at any position.
  const [value = '', ...words] = text.slice(start).replace(UNSEEN, '').trim().split(' ', MAX_WORDS)
  // A sentence about an address is not a value that is an address.
  if (words.length === MAX_WORDS - 1) return 0
  if (WRAPPERS.test(value)) return BIT.wrapper
  if (scheme !== undefined && !FETCHED.has(scheme.toLowerCase())) return 0
  return foundIn(scheme === undefined ? `http:${value}` : value)
}

/** The WHATWG URL parser normalizes decimal, octal and hexadecimal addresses. */
function foundIn(value: string): number {
  let url: URL
  try {
    url = new URL(value.replace(/["')>]{1,4}$/, ''))
  } catch {
    return 0
  }
  const host = url.hostname.replace(/\.$/, '')
  if (METADATA_NAMES.test(host)) return BIT.metadata
  const embedded = EMBEDDED.exec(host)?.[1]?.replaceAll('-', '.')
  const address = parseAddress(embedded ?? host)
  if (address === undefined) {
    if (!INTERNAL_NAMES.test(host)) return 0
    return isOfDevelopment(url, value) ? BIT.development : BIT.internal
  }
  if (METADATA_ADDRESSES.has(address.toString())) return BIT.metadata
  const range = address.range()
  if (!INSIDE.has(range)) return 0
  return range === 'loopback' && isOfDevelopment(url, value) ? BIT.development : BIT.internal
}

/** Returns IPv4 for an address that is mapped into IPv6, translated (RFC 6052) or 6to4. */
function parseAddress(host: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const text = host.startsWith('[') ? host.slice(1, -1) : host
  if (!ipaddr.isValid(text) || !/[.:]/.test(text)) return undefined
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4') return address
  const bytes = address.toByteArray()
  switch (address.range()) {
    case 'rfc6052':
      return ipaddr.fromByteArray(bytes.slice(12))
    case '6to4':
      return ipaddr.fromByteArray(bytes.slice(2, 6))
    default:
      return address
  }
}

/** Reports whether a URL has a port of applications, no credentials, and is not obfuscated. */
function isOfDevelopment(url: URL, value: string): boolean {
  return (
    Number(url.port) >= FIRST_USER_PORT &&
    !SERVICE_PORTS.has(url.port) &&
    url.username === '' &&
    value.toLowerCase().includes(`//${url.host}`)
  )
}
