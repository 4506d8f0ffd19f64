/** Services that one feature of a gateway offers to another. */

/** A place for one service of each gateway. */
export interface Exchange<Service> {
  /** Offers the service to the other features of a gateway, which `gateway` identifies. */
  offer(gateway: object, service: Service): void
  /** Returns the service; undefined if no feature has offered it. */
  of(gateway: object): Service | undefined
}

export function createExchange<Service>(): Exchange<Service> {
  const offered = new WeakMap<object, Service>()
  return {
    offer: (gateway, service) => void offered.set(gateway, service),
    of: (gateway) => offered.get(gateway),
  }
}
