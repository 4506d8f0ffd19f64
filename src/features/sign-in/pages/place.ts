/** The place of a browser, as the platform reports it. */
import type { SessionPlace } from '../session-store.ts'

const MAX_CITY_CHARACTERS = 80
/** `XX` is unknown, and `T1` is the Tor network. */
const COUNTRY = /^(?!XX)[A-Z]{2}$/

/** Returns the place of the address of a request. Only Cloudflare reports one. */
export function placeOf({ cf }: { readonly cf?: unknown }): SessionPlace {
  const { city, country } = (cf ?? {}) as { readonly city?: unknown; readonly country?: unknown }
  return {
    ...(typeof city === 'string' && city !== '' && { city: city.slice(0, MAX_CITY_CHARACTERS) }),
    ...(typeof country === 'string' && COUNTRY.test(country) && { country }),
  }
}
