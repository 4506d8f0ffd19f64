/** Where a browser is, as the platform says. */
import type { SessionPlace } from '../session-store.ts'

const MAX_CITY_CHARACTERS = 80
/** `XX` is unknown, and `T1` is the Tor network. */
const COUNTRY = /^(?!XX)[A-Z]{2}$/

/** Returns the place of the address of a request. Cloudflare says it; other platforms say nothing. */
export function placeOf({ cf }: { readonly cf?: unknown }): SessionPlace {
  const { city, country } = (cf ?? {}) as { readonly city?: unknown; readonly country?: unknown }
  return {
    ...(typeof city === 'string' && city !== '' && { city: city.slice(0, MAX_CITY_CHARACTERS) }),
    ...(typeof country === 'string' && COUNTRY.test(country) && { country }),
  }
}
