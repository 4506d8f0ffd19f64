/** The configuration of `workerd serve`: the same Worker once for each layer. */

export interface WorkerdServices {
  /** The bundle, relative to the configuration: Cap'n Proto looks absolute paths up elsewhere. */
  readonly module: string
  readonly compatibilityDate: string
  readonly compatibilityFlags: readonly string[]
  /** Names of the services: each an isolate with a socket of its own. */
  readonly names: readonly string[]
  /** Bindings that are read from workerd's environment, so that no secret stands in a file. */
  readonly variables: readonly string[]
  /** `host:port` of who takes the batches of the audit queue. */
  readonly queueAddress: string
}

/** Returns the text of a Cap'n Proto configuration. Sockets are bound to free loopback ports. */
export function workerdConfig(services: WorkerdServices): string {
  const { module, compatibilityDate, compatibilityFlags, names, variables, queueAddress } = services
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
${names.map((name) => `    (name = ${text(name)}, worker = .layers),\n`).join('')}\
    (name = "internet", network = (allow = ["public", "private"])),
    (name = "queue", external = (address = ${text(queueAddress)}, http = ())),
  ],
  sockets = [
${names
  .map(
    (name) =>
      `    (name = ${text(name)}, address = "127.0.0.1:0", http = (), service = ${text(name)}),\n`,
  )
  .join('')}\
  ],
);

const layers :Workerd.Worker = (
  modules = [(name = "layers.js", esModule = embed ${text(module)})],
  compatibilityDate = ${text(compatibilityDate)},
  compatibilityFlags = [${compatibilityFlags.map(text).join(', ')}],
  bindings = [
${variables
  .map((name) => `    (name = ${text(name)}, fromEnvironment = ${text(name)}),\n`)
  .join('')}\
    (name = "AUDIT_QUEUE", queue = "queue"),
  ],
);
`
}

/** A Cap'n Proto string. */
function text(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}
