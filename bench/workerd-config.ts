/** Generates the configuration of `workerd serve`: the same Worker once for each layer. */

export interface WorkerdServices {
  /**
   * Path of the bundle, relative to the configuration: Cap'n Proto resolves absolute paths
   * differently.
   */
  readonly module: string
  readonly compatibilityDate: string
  readonly compatibilityFlags: readonly string[]
  /** Names of the services. Each is an isolate with its own socket. */
  readonly names: readonly string[]
  /** Bindings that workerd reads from its environment, so that no file contains a secret. */
  readonly variables: readonly string[]
  /** `host:port` of the receiver of audit queue batches. */
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

/** Formats a Cap'n Proto string. */
function text(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}
