/** The place of a browser, as the platform or a trusted proxy reports it. */
import type { SessionPlace } from '../session-store.ts'

const MAX_CITY_CHARACTERS = 80
/** Control and format characters: some change the order or the lines of the text around them. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u
/** `XX` and `ZZ` are unknown, and `T1` is the Tor network. */
const COUNTRY = /^(?!XX|ZZ)[A-Z]{2}$/

/** Returns the place of the address of a request, from `request.cf` or what a trusted proxy reports. */
export function placeOf(reported: unknown): SessionPlace {
  const { city, country } = (reported ?? {}) as { readonly [name in 'city' | 'country']?: unknown }
  const name = typeof city === 'string' ? city.trim().slice(0, MAX_CITY_CHARACTERS) : ''
  const code = typeof country === 'string' ? country.trim().toUpperCase() : ''
  return {
    ...(/\p{L}/u.test(name) && !INVISIBLE.test(name) && { city: name }),
    ...(COUNTRY.test(code) && { country: code }),
  }
}
