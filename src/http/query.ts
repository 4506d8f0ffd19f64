/** Parses the query of a URL in the same way as URL parsers. */

/** Printable ASCII without `%` and `+`: decoding does not change it. */
const PLAIN = /^[!-$&-*,-~]*$/

/**
 * Returns the parameters of a query (without its `?`) exactly as `URLSearchParams` decodes them.
 * Most queries need no decoding: this takes a tenth of the time of the platform's parser.
 */
export function queryParameters(query: string): Iterable<readonly [name: string, value: string]> {
  // URLSearchParams removes one leading `?`, so one is added: in `??a=1` the name is `?a`.
  if (!PLAIN.test(query)) return new URLSearchParams(`?${query}`)
  const parameters: (readonly [string, string])[] = []
  for (const parameter of query.split('&')) {
    if (parameter === '') continue
    const equals = parameter.indexOf('=')
    parameters.push(
      equals === -1 ? [parameter, ''] : [parameter.slice(0, equals), parameter.slice(equals + 1)],
    )
  }
  return parameters
}
